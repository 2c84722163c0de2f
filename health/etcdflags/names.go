// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdflags

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/smallfile"
	"github.com/quorumd/quorumd/systemd"
)

// Names are the names of the settings with which etcd is started.
type Names struct {
	Flags     []string // names of flags on the command line, without dashes
	Variables []string // names of environment variables, such as ETCD_NAME
	Keys      []string // names of keys in the configuration file
	Gates     []string // feature gates with their values, such as InitialCorruptCheck=true
}

// Names returns the names of all settings of the running etcd with that process ID, and of the settings with which etcd
// will be started next. It returns an error if a source cannot be read, because names would be missing. The environment
// of another user's process is an exception: Names omits it if it cannot be read.
func (r Reader) Names(pid int) (Names, error) {
	proc, err := procfs.NewFS(cmp.Or(r.Proc, procfs.DefaultMountPoint))
	if err != nil {
		return Names{}, err
	}
	process, err := proc.Proc(pid)
	if err != nil {
		return Names{}, err
	}
	args, err := process.CmdLine()
	if err != nil {
		return Names{}, err
	}
	flags := map[string]string{}
	if len(args) > 0 {
		parse(flags, args[1:], func(name string) string { return name })
	}
	variables, err := r.nextEnvironment(process)
	if err != nil {
		return Names{}, err
	}
	found := Names{
		Flags:     slices.Sorted(maps.Keys(flags)),
		Variables: slices.DeleteFunc(slices.Sorted(maps.Keys(variables)), notEtcd),
	}
	gates := cmp.Or(flags[featureGates], variables["ETCD_FEATURE_GATES"])
	if file := cmp.Or(flags["config-file"], variables["ETCD_CONFIG_FILE"]); file != "" {
		if found.Keys, gates, err = keys(file); err != nil {
			return Names{}, fmt.Errorf("cannot read etcd's configuration file: %w", err)
		}
		found.Variables = nil // with a configuration file, etcd ignores its environment
	}
	found.Gates = strings.FieldsFunc(gates, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(found.Gates)
	return found, nil
}

// featureGates is the flag, and the key in the configuration file, with etcd's feature gates.
const featureGates = "feature-gates"

// nextEnvironment returns the variables of a process, of its unit, of the environment file, and of the configuration.
// It omits the variables of another user's process if they cannot be read.
func (r Reader) nextEnvironment(process procfs.Proc) (map[string]string, error) {
	all, err := r.variables(process)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if all == nil {
		all = map[string]string{}
	}
	for _, entry := range r.Unit {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = value
	}
	text, err := os.ReadFile(r.EnvironmentFile)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	file, err := systemd.ParseEnvironment(string(text))
	if err != nil {
		return nil, err
	}
	maps.Copy(all, file)
	maps.Copy(all, r.Environment)
	return all, nil
}

// notEtcd reports whether a variable does not set a flag of etcd.
func notEtcd(variable string) bool {
	return !strings.HasPrefix(variable, "ETCD_") || variable == "ETCD_UNSUPPORTED_ARCH" || variable == "ETCD_VERIFY"
}

// maxFile bounds etcd's configuration file, in bytes.
const maxFile = 1 << 20

// keys returns the top-level keys of etcd's configuration file that are also flags, and its feature gates.
func keys(path string) (names []string, gates string, err error) {
	text, err := smallfile.Read(path, maxFile)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	top := map[string]yaml.Node{}
	// The error is not wrapped: it may quote the file, and other hosts can read this message.
	if yaml.Unmarshal(text, &top) != nil {
		return nil, "", fmt.Errorf("%s is not a YAML file of settings", path)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(top)), func(key string) bool {
		return key == "client-transport-security" || key == "peer-transport-security" // sections, not flags
	}), top[featureGates].Value, nil
}
