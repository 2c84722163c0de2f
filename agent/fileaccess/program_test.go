// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestAProgramBelongsToRootAloneIfNoOtherUserCanWriteItOrADirectoryAboveIt(t *testing.T) {
	t.Parallel()
	const everyone = "every user on this host"
	for name, c := range map[string]struct {
		file, dir os.FileMode
		where     string
		who       string
	}{
		"closed":                      {0o755, 0o755, "", ""},
		"writable by everyone":        {0o757, 0o755, "bin/etcd", everyone},
		"in a directory of everyone":  {0o755, 0o757, "bin", everyone},
		"in a directory such as /tmp": {0o755, 0o777 | os.ModeSticky, "", ""},
		"writable by an empty group":  {0o775, 0o755, "", ""},
	} {
		dir := tempdir.New(t)
		bin, program := filepath.Join(dir, "bin"), filepath.Join(dir, "bin", "etcd")
		must(t, os.Mkdir(bin, 0o755))
		must(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
		must(t, os.Chmod(program, c.file))
		must(t, os.Chmod(bin, c.dir))
		must(t, os.Chmod(dir, 0o755))
		link := filepath.Join(dir, "link")
		must(t, os.Symlink("bin/etcd", link))
		accounts := accounts{users: []account{{name: "me", id: uint32(os.Getuid())}}}
		for _, path := range []string{program, link} {
			links := maxLinks
			got, err := writers(path, os.Getuid(), accounts, &links)
			must(t, err)
			switch {
			case (got != nil) != (c.who != ""):
				t.Errorf("%s: %+v", name, got)
			case got != nil && (got.Who != c.who || got.Path != filepath.Join(dir, c.where) ||
				got.Remedy != "chmod go-w "+got.Path):
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

func TestAProgramOfAnotherUserOrOfAGroupWithMembersIsForeign(t *testing.T) {
	t.Parallel()
	dir := tempdir.New(t)
	program := filepath.Join(dir, "etcd")
	must(t, os.WriteFile(program, nil, 0o755))
	must(t, os.Chmod(program, 0o775))
	info, err := os.Lstat(program)
	must(t, err)
	uid, gid := os.Getuid(), uint32(os.Getgid())
	a := accounts{
		users:  []account{{name: "me", id: uint32(uid)}, {name: "alice", id: 4711, primary: gid}},
		groups: []account{{name: "ops", id: gid}},
	}
	if gid != 0 { // root's group is trusted
		if got := writer(program, info, uid, a); got == nil || got.Who != "alice, of the group ops" {
			t.Errorf("writable by the group: %+v", got)
		}
	}
	if uid != 0 {
		if got := writer(program, info, uid+1, a); got == nil || got.Who != "user me" ||
			got.Remedy != "chown root "+program {
			t.Errorf("of another user: %+v", got)
		}
	}
}

func TestALoopOfLinksIsAnError(t *testing.T) {
	t.Parallel()
	link := filepath.Join(tempdir.New(t), "etcd")
	must(t, os.Symlink(link, link))
	if got, err := ProgramWriters(link, os.Getuid()); err == nil {
		t.Errorf("%+v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
