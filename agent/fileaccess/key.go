// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package fileaccess reports which users can read the files that a configuration names. The user that runs quorumd
// must be able to: Look checks that as this user. Other users must not be able to read the client key, because it
// grants full access to etcd, whatever quorumd refuses. OpenKey returns who can read it.
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
	modeGroup  = 0o060 // read or write
	modeOthers = 0o006
)

// OpenKey returns what is wrong with the owner and the mode of the client key, and the command to fix it. user runs
// quorumd. It returns nothing for a key that it cannot check, because it is missing or in a closed directory.
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

// key is a file's metadata.
type key struct {
	path     string
	mode     os.FileMode
	uid, gid uint32
}

// KeyOwner returns the user that must own the client key: the one that runs the service, if the configuration belongs
// to one. Otherwise it is me if etcd is a child process of quorumd, as in a demo.
func KeyOwner(c config.Config, service, me string) string {
	if service == "" && c.Etcd.Runner != config.RunnerProcess {
		return DefaultUser
	}
	return cmp.Or(service, me)
}

// open returns which other users can access a key, and the command to fix it, or "".
func (k key) open(user, control string, a accounts) string {
	others := k.openTo(user, control, a)
	if others == "" {
		return ""
	}
	return fmt.Sprintf("%s (mode %04o) is readable by %s and allows full access to etcd; run: chown %s: %s "+
		"&& chmod 0400 %s",
		k.path, k.mode, others, user, k.path, k.path)
}

func (k key) openTo(user, control string, a accounts) string {
	group := a.group(k.gid)
	others := slices.DeleteFunc(a.members(k.gid), func(name string) bool { return name == user || name == "root" })
	switch {
	case k.mode&modeOthers != 0:
		return "every user on this host"
	case k.mode&modeGroup == 0 || k.gid == 0:
		return ""
	case group == control && group != "":
		return fmt.Sprintf("the group %s, which should reach etcd only through quorumd (control.group)", group)
	case len(others) > 3:
		return fmt.Sprintf("%s and %d more, of the group %s", strings.Join(others[:3], ", "), len(others)-3, group)
	case len(others) > 0:
		return fmt.Sprintf("%s, of the group %s", strings.Join(others, ", "), group)
	}
	return ""
}
