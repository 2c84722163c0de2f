// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package fileaccess reports which users can read the files that a configuration names. The user that runs quorumd
// must be able to: Look checks that as this user. Other users must not be able to read the client key, because it
// gives full access to etcd, whatever quorumd refuses. OpenKey returns who can read it.
package fileaccess

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/quorumd/quorumd/agent/config"
)

const (
	modeGroup  = 0o060 // to read or to write
	modeOthers = 0o006
)

// OpenKey gives what is wrong with the owner and the mode of the client key, and what to type. user is who runs
// quorumd. A key that cannot be looked at, because it is missing or behind a closed directory, is no problem of this
// kind.
func OpenKey(c config.Config, user string) []config.Problem {
	if c.Cluster.TLS == nil || c.Cluster.TLS.Key == "" {
		return nil
	}
	info, err := os.Stat(c.Cluster.TLS.Key)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	k := key{path: c.Cluster.TLS.Key, mode: info.Mode().Perm(), uid: stat.Uid, gid: stat.Gid}
	accounts, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return []config.Problem{{Key: "cluster.tls.key", Message: err.Error()}}
	}
	if why := k.open(user, c.Control.Group, accounts); why != "" {
		return []config.Problem{{Key: "cluster.tls.key", Message: why}}
	}
	return nil
}

// key is a file as its inode has it.
type key struct {
	path     string
	mode     os.FileMode
	uid, gid uint32
}

// KeyOwner returns the user that must own the client key: the one that runs the service, if the configuration is that
// of one. A configuration of no service is me's own when etcd is a child process of quorumd, as in a demo.
func KeyOwner(c config.Config, service, me string) string {
	if service == "" && c.Etcd.Runner != config.RunnerProcess {
		return DefaultUser
	}
	return cmp.Or(service, me)
}

// open says to whom but its user a key is open and what to type, or nothing.
func (k key) open(user, control string, a accounts) string {
	whom := k.toWhom(user, control, a)
	if whom == "" {
		return ""
	}
	return fmt.Sprintf("%s (mode %04o) is open to %s, and whoever has it may do anything in etcd; type: chown %s: %s "+
		"&& chmod 0400 %s",
		k.path, k.mode, whom, user, k.path, k.path)
}

func (k key) toWhom(user, control string, a accounts) string {
	group := a.group(k.gid)
	others := slices.DeleteFunc(a.members(k.gid), func(name string) bool { return name == user || name == "root" })
	switch {
	case k.mode&modeOthers != 0:
		return "everybody on this host"
	case k.mode&modeGroup == 0 || k.gid == 0:
		return ""
	case group == control && group != "":
		return fmt.Sprintf("the group %s, which may only change things through quorumd (control.group)", group)
	case len(others) > 3:
		return fmt.Sprintf("%s and %d more, of the group %s", strings.Join(others[:3], ", "), len(others)-3, group)
	case len(others) > 0:
		return fmt.Sprintf("%s, of the group %s", strings.Join(others, ", "), group)
	}
	return ""
}
