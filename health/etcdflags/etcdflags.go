// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package etcdflags reads the local etcd's settings: its environment, the flags on its command line, which override the
// environment, and the names of the settings in its configuration file. It reads only /proc and files, and sends no
// requests.
package etcdflags

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/quorumd/quorumd/health"
)

const (
	mostFlags = 512
	mostBytes = 256 // maximum length of a name or a value
)

// Reader reads the settings of one etcd.
type Reader struct {
	Environment map[string]string // the variables that quorumd sets for etcd
	Proc        string            // directory to read instead of /proc, for tests; empty: /proc
	// Unit is the environment that etcd's unit itself sets, as NAME=value. Only Names uses it.
	Unit []string
	// EnvironmentFile is the file with the environment of the next start, and Program the path of etcd's program.
	EnvironmentFile, Program string
	// Environ returns a process's environment. If it is nil, the environment is read from Proc.
	Environ func(pid int) ([]string, error)
}

// Read returns the flags of the etcd with that process ID.
func (r Reader) Read(pid int) health.EtcdSettings {
	absent := health.EtcdSettings{Absent: "cannot read etcd's command line"}
	proc, err := procfs.NewFS(cmp.Or(r.Proc, procfs.DefaultMountPoint))
	if err != nil {
		return absent
	}
	process, err := proc.Proc(pid)
	if err != nil {
		return absent
	}
	args, err := process.CmdLine()
	if err != nil || len(args) == 0 {
		return absent
	}
	flags := map[string]string{}
	for name, value := range r.Environment {
		if flag, is := strings.CutPrefix(name, "ETCD_"); is {
			note(flags, plain(strings.ToLower(strings.ReplaceAll(flag, "_", "-"))), value)
		}
	}
	parse(flags, args[1:], plain)
	if flags["config-file"] != "" {
		return health.EtcdSettings{Absent: "etcd uses a config file, which overrides all other settings"}
	}
	return health.EtcdSettings{Known: true, Flags: flags}
}

// parse adds the flags of a command line. A flag without "=" takes the next argument as its value, or is true if that
// argument is a flag or missing. named returns the name under which a flag is stored.
func parse(flags map[string]string, args []string, named func(string) string) {
	for i := 0; i < len(args); i++ {
		arg, dashed := strings.CutPrefix(args[i], "-")
		if !dashed {
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if !has {
			value = "true"
			if i+1 < len(args) && !isFlag(args[i+1]) {
				i++
				value = args[i]
			}
		}
		note(flags, named(name), value)
	}
}

// plain returns the name of a flag without the prefix "experimental-", so that it is the same in all versions.
func plain(name string) string { return strings.TrimPrefix(name, "experimental-") }

// isFlag reports whether an argument is a flag rather than a value, such as a negative number.
func isFlag(arg string) bool {
	_, err := strconv.ParseFloat(arg, 64)
	return strings.HasPrefix(arg, "-") && err != nil
}

// note stores a flag, unless its name or its value is too long or there are too many flags.
func note(flags map[string]string, name, value string) {
	if name != "" && len(name) <= mostBytes && len(value) <= mostBytes && len(flags) < mostFlags {
		flags[name] = value
	}
}
