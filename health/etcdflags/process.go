// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdflags

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/quorumd/quorumd/agent/smallfile"
	"github.com/quorumd/quorumd/systemd"
)

const (
	learnersFlag     = "max-learners"
	learnersVariable = "ETCD_MAX_LEARNERS"
)

// MaxLearners returns the maximum number of learners that the running etcd with that process ID allows: the value of
// its flag, else of its variable, else 1. The result is 0 with an error if the limit is not certain.
func (r Reader) MaxLearners(pid int) (int, error) {
	started, err := r.started(pid)
	if err != nil {
		return 0, err
	}
	value, err := started(learnersFlag, learnersVariable)
	if err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(cmp.Or(value, "1"))
	if err != nil || limit < 1 {
		return 0, fmt.Errorf("%s is %q, want a positive number", learnersFlag, value)
	}
	return limit, nil
}

// NextMaxLearners returns the number of learners to which the etcd with that process ID would limit the cluster after a
// restart, and where that is set: the flag of the process, else the environment file. The limit is 0 if neither sets
// it, because etcd's unit may have another source of variables. The limit is 0 with an error if it is uncertain.
func (r Reader) NextMaxLearners(pid int) (limit int, from string, err error) {
	proc, err := procfs.NewFS(cmp.Or(r.Proc, procfs.DefaultMountPoint))
	if err != nil {
		return 0, "", err
	}
	process, err := proc.Proc(pid)
	if err != nil {
		return 0, "", err
	}
	args, err := process.CmdLine()
	if err != nil || len(args) == 0 {
		return 0, "", errors.Join(err, errors.New("etcd has no command line"))
	}
	flags := map[string]string{}
	parse(flags, args[1:], plain)
	vars, err := r.fileEnvironment()
	value, from := vars[learnersVariable], r.EnvironmentFile
	switch {
	case flags["config-file"] != "" || vars["ETCD_CONFIG_FILE"] != "":
		return 0, "", errors.New("etcd uses a config file")
	case flags[learnersFlag] != "":
		value, from = flags[learnersFlag], "etcd's unit"
	case err != nil:
		return 0, "", err
	case value == "":
		return 0, "", nil
	}
	limit, err = strconv.Atoi(value)
	if err != nil || limit < 1 {
		return 0, "", fmt.Errorf("%s is %q in %s, want a positive number", learnersFlag, value, from)
	}
	return limit, from, nil
}

// mostEnvironment limits the size of an environment file, in bytes.
const mostEnvironment = 64 << 10

// fileEnvironment returns what the environment file sets now. The environment of the running etcd may differ.
func (r Reader) fileEnvironment() (map[string]string, error) {
	text, err := smallfile.Read(r.EnvironmentFile, mostEnvironment)
	if err != nil {
		return nil, err
	}
	return systemd.ParseEnvironment(string(text))
}

// PeerFiles returns the paths of the peer certificate, its key and the trusted CA of the running etcd with that process
// ID. A path is empty if etcd was started without that file, or if that is unknown because only the environment file
// could be read.
func (r Reader) PeerFiles(pid int) (files [3]string, err error) {
	started, err := r.started(pid)
	if err != nil {
		return files, err
	}
	for i, s := range [...][2]string{
		{"peer-cert-file", "ETCD_PEER_CERT_FILE"},
		{"peer-key-file", "ETCD_PEER_KEY_FILE"},
		{"peer-trusted-ca-file", "ETCD_PEER_TRUSTED_CA_FILE"},
	} {
		// A variable that the environment file does not set counts as empty. Another source of variables may set
		// it; then quorumd wrongly assumes that the member lacks that file, which is safe.
		if files[i], err = started(s[0], s[1]); err != nil && !errors.Is(err, errNotInFile) {
			return [3]string{}, err
		}
	}
	return files, nil
}

// errNotInFile means that the environment file does not set a variable. The unit may have another source of variables,
// such as /etc/default/etcd, which only the unreadable environment of the process would show.
var errNotInFile = errors.New("the environment file does not set it, and etcd's environment cannot be read")

// started returns a function that looks up a setting with which a process of etcd was started: its flag, else its
// variable, else empty. If the environment of the process cannot be read, because another user runs it, the environment
// file counts instead, provided that it is older than the process. systemd normally reads it last, so its values are
// taken as certain. The function returns an error if a value is not certain.
func (r Reader) started(pid int) (func(flag, variable string) (string, error), error) {
	proc, err := procfs.NewFS(cmp.Or(r.Proc, procfs.DefaultMountPoint))
	if err != nil {
		return nil, err
	}
	process, err := proc.Proc(pid)
	if err != nil {
		return nil, err
	}
	args, err := process.CmdLine()
	if err != nil {
		return nil, err
	}
	if len(args) == 0 || filepath.Base(args[0]) != filepath.Base(r.Program) {
		return nil, fmt.Errorf("process %d does not run %s", pid, r.Program)
	}
	flags := map[string]string{}
	parse(flags, args[1:], plain)
	if flags["config-file"] != "" {
		return nil, errors.New("etcd uses a config file")
	}
	return func(flag, variable string) (string, error) {
		if value := flags[flag]; value != "" {
			return value, nil
		}
		vars, all, err := r.environment(process)
		switch value, set := vars[variable]; {
		case err != nil:
			return "", err
		case vars["ETCD_CONFIG_FILE"] != "":
			return "", errors.New("etcd uses a config file")
		case !set && !all:
			return "", errNotInFile
		default:
			return value, nil
		}
	}, nil
}

// variables returns the environment with which a process was started.
func (r Reader) variables(process procfs.Proc) (map[string]string, error) {
	read := r.Environ
	if read == nil {
		read = func(int) ([]string, error) { return process.Environ() }
	}
	list, err := read(process.PID)
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for _, entry := range slices.Backward(list) { // the first entry of a name counts
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	return vars, nil
}

// environment returns the environment with which a process was started, and true. If access to that is denied, it
// returns the variables of the environment file instead, and false, or an error if that file was changed after the
// process was started.
func (r Reader) environment(process procfs.Proc) (vars map[string]string, all bool, err error) {
	vars, err = r.variables(process)
	if !errors.Is(err, fs.ErrPermission) {
		return vars, true, err
	}
	info, err := os.Stat(r.EnvironmentFile)
	if err != nil {
		return nil, false, err
	}
	stat, err := process.Stat()
	if err != nil {
		return nil, false, err
	}
	started, err := stat.StartTime()
	if err != nil {
		return nil, false, err
	}
	const granularity = time.Second // resolution of the start time
	if since := info.ModTime().Sub(time.UnixMilli(int64(started * 1000))); since > granularity {
		return nil, false, fmt.Errorf("%s was changed after etcd was started", r.EnvironmentFile)
	}
	vars, err = r.fileEnvironment()
	return vars, false, err
}
