// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package fileaccess checks who can access the files that a configuration names. The user that runs quorumd must be
// able to read them: CheckAs checks that as this user. Other users must not be able to read the client key, because it
// grants full access to etcd and bypasses quorumd: CheckKey checks that.
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

// CheckKey returns a problem, with the command to fix it, if the mode of the client key allows access to a user other
// than root, the owner and user. user is the user that runs quorumd. It returns nothing if it cannot access the key,
// for example because the key does not exist.
func CheckKey(c config.Config, user string) []config.Problem {
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
	if why := k.problem(user, c.Control.Group, accounts); why != "" {
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

// KeyOwner returns the user that should own the client key: service, the user of the unit that reads the configuration.
// If service is empty, the owner is me if quorumd runs etcd as a child process, as in a demo, and DefaultUser
// otherwise.
func KeyOwner(c config.Config, service, me string) string {
	if service == "" && c.Etcd.Runner != config.RunnerProcess {
		return DefaultUser
	}
	return cmp.Or(service, me)
}

// problem returns which other users can access the key, with the command to fix it, or "".
func (k key) problem(user, control string, a accounts) string {
	others := k.others(user, control, a)
	if others == "" {
		return ""
	}
	return fmt.Sprintf("%s (mode %04o) allows full access to etcd, but is readable by %s; run: chown %s: %s "+
		"&& chmod 0400 %s",
		k.path, k.mode, others, user, k.path, k.path)
}

// others returns which users other than root and the given user have access through the key's mode, or "". It does not
// check the owner.
func (k key) others(user, control string, a accounts) string {
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
