// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxAccounts limits the bytes read of each account file.
const maxAccounts = 4 << 20

// account is a line of passwd(5) or group(5).
type account struct {
	name    string
	id      uint32
	primary uint32   // ID of a user's primary group
	members []string // a group's members
}

// accounts are the local users and groups of this host. Accounts of a directory service such as LDAP are missing.
type accounts struct {
	users  []account
	groups []account
}

func readAccounts(passwdFile, groupFile string) (accounts, error) {
	passwd, err := readLines(passwdFile)
	group, groupErr := readLines(groupFile)
	if err = errors.Join(err, groupErr); err != nil {
		return accounts{}, fmt.Errorf("cannot read accounts: %w", err)
	}
	var a accounts
	for _, fields := range passwd {
		primary, err := strconv.ParseUint(fields[3], 10, 32)
		if u, ok := accountOf(fields); ok && err == nil {
			u.primary = uint32(primary)
			a.users = append(a.users, u)
		}
	}
	for _, fields := range group {
		if g, ok := accountOf(fields); ok {
			g.members = strings.FieldsFunc(fields[3], func(r rune) bool { return r == ',' })
			a.groups = append(a.groups, g)
		}
	}
	return a, nil
}

func accountOf(fields []string) (account, bool) {
	id, err := strconv.ParseUint(fields[2], 10, 32)
	return account{name: fields[0], id: uint32(id)}, err == nil && fields[0] != ""
}

// readLines returns the fields of each line that has at least four fields, which is as many as readAccounts uses.
func readLines(file string) ([][]string, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxAccounts))
	if err != nil {
		return nil, err
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimRight(line, "\n"), ":"); len(fields) >= 4 {
			lines = append(lines, fields)
		}
	}
	return lines, nil
}

// group returns the name of a group, or "".
func (a accounts) group(gid uint32) string {
	for _, g := range a.groups {
		if g.id == gid {
			return g.name
		}
	}
	return ""
}

// members returns the sorted names of the users with this group as an additional or primary group.
func (a accounts) members(gid uint32) []string {
	var names []string
	for _, g := range a.groups {
		if g.id == gid {
			names = append(names, g.members...)
		}
	}
	for _, u := range a.users {
		if u.primary == gid {
			names = append(names, u.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// user returns the account with that name, and the IDs of its additional groups.
func (a accounts) user(name string) (user account, groups []uint32, ok bool) {
	i := slices.IndexFunc(a.users, func(u account) bool { return u.name == name })
	if i < 0 {
		return account{}, nil, false
	}
	for _, g := range a.groups {
		if slices.Contains(g.members, name) {
			groups = append(groups, g.id)
		}
	}
	return a.users[i], groups, true
}

// nameOf returns the name of a user, or the numeric ID.
func (a accounts) nameOf(uid uint32) string {
	for _, u := range a.users {
		if u.id == uid {
			return u.name
		}
	}
	return strconv.FormatUint(uint64(uid), 10)
}

// Group returns the ID of a local group, and reports whether the group exists.
func Group(name string) (gid uint32, ok bool, err error) {
	a, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return 0, false, err
	}
	i := slices.IndexFunc(a.groups, func(g account) bool { return g.name == name })
	if i < 0 {
		return 0, false, nil
	}
	return a.groups[i].id, true, nil
}
