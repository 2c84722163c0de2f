// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
)

// access is the permission that a route needs.
type access int

const (
	accessRead   access = iota // every user of the host
	accessChange               // users permitted by rules
)

// rules decides who may change things, and names the callers.
type rules struct {
	self  uint32 // the daemon's own user
	group string // as configured
	gid   uint32 // ID of the group, if known is set
	known bool   // the group exists on this host
	users map[uint32]string
}

func (r rules) mayChange(p peer) bool {
	if p.uid == 0 || p.uid == r.self {
		return true
	}
	return r.known && (p.gid == r.gid || slices.Contains(p.groups, r.gid))
}

// check returns an error with a hint if a peer may not use a route that needs the given access.
func (r rules) check(a access, p peer, known bool) error {
	if a == accessRead || known && r.mayChange(p) {
		return nil
	}
	hint := "run it as root"
	if r.known {
		hint = fmt.Sprintf("run it as root, or as a member of the group %s (usermod -aG %s USER, then log in again)",
			r.group, r.group)
	}
	who := "an unknown user"
	if known {
		who = r.name(p)
	}
	return &control.Error{
		Status: http.StatusForbidden, Code: control.CodeNotPermitted, Hint: hint,
		Message: fmt.Sprintf("cannot change anything as %s: not permitted", who),
	}
}

// name returns a peer's name, as recorded: "root", "uid 1000 (alice)", or "uid 1000" for a user without an entry in the
// passwd file when the server started.
func (r rules) name(p peer) string {
	if p.uid == 0 {
		return "root"
	}
	if user, ok := r.users[p.uid]; ok {
		return fmt.Sprintf("uid %d (%s)", p.uid, user)
	}
	return fmt.Sprintf("uid %d", p.uid)
}

// readRules reads the account files. The server calls it once, at start, because a request must not wait for a disk
// that may hang.
func readRules(group, groupFile, passwdFile string) (rules, error) {
	r := rules{self: uint32(os.Geteuid()), group: group, users: map[uint32]string{}}
	groupErr := eachAccount(groupFile, func(name string, id uint32) {
		if name == group && group != "" {
			r.gid, r.known = id, true
		}
	})
	passwdErr := eachAccount(passwdFile, func(name string, id uint32) {
		if _, taken := r.users[id]; !taken {
			r.users[id] = name
		}
	})
	if groupErr != nil {
		return r, groupErr
	}
	return r, passwdErr
}

// eachAccount calls f with the name and the ID of every entry of a file in the format of passwd(5) or group(5). It
// skips lines that it cannot parse.
func eachAccount(file string, f func(name string, id uint32)) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read accounts: %w", err)
	}
	defer in.Close()
	const most = 4 << 20
	lines := bufio.NewScanner(io.LimitReader(in, most))
	lines.Buffer(nil, most) // the line of a group lists all its members
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 3 || fields[0] == "" {
			continue
		}
		if id, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			f(fields[0], uint32(id))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read accounts: %s: %w", file, err)
	}
	return nil
}
