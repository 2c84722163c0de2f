// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// asOther makes this program use a store as another user. The next arguments are the store's directory and the actions.
const asOther = "as-another-user"

// otherUser performs actions on the store in a directory: put=NAME, read=NAME, mark=NAME, delete=NAME.
func otherUser(dir string, do []string) error {
	syscall.Umask(0o077)
	ctx := context.Background()
	d, err := OpenDirectory(dir, "prod")
	if err != nil {
		return err
	}
	defer d.Close()
	for _, one := range do {
		what, name, _ := strings.Cut(one, "=")
		switch what {
		case "put":
			err = d.Put(ctx, name, strings.NewReader("content of "+name))
		case "mark":
			err = d.Replace(ctx, name, []byte("content of "+name))
		case "delete":
			err = d.Delete(ctx, name)
		case "read":
			var r io.ReadCloser
			if r, err = d.Get(ctx, name); err == nil {
				var text []byte
				if text, err = io.ReadAll(r); err == nil && string(text) != "content of "+name {
					err = fmt.Errorf("%s holds %q", name, text)
				}
				r.Close()
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one, err)
		}
	}
	return nil
}

// sharedPlace returns a new directory with the given group and mode. Every user can enter its parent directories.
func sharedPlace(t *testing.T, gid int, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(tempdir.New(t), "store")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, -1, gid))
	must(t, os.Chmod(dir, mode))
	return dir
}

// TestDirectoryIsSharedByHostsWithDifferentUserIDs uses two users of one group, as if quorumd ran on two hosts that
// mount the same directory. Only root can switch users. Without root, the user who runs the test acts as both.
func TestDirectoryIsSharedByHostsWithDifferentUserIDs(t *testing.T) {
	t.Parallel()
	const group, outside = 991, 65534
	gid := os.Getegid()
	if os.Geteuid() == 0 {
		gid = group
	}
	dir, self := sharedPlace(t, gid, os.ModeSetgid|0o770), tempdir.Self(t)
	as := func(uid uint32, groups []uint32, do ...string) error {
		command := exec.CommandContext(t.Context(), self, append([]string{asOther, dir}, do...)...)
		if os.Geteuid() == 0 {
			command.SysProcAttr = &syscall.SysProcAttr{
				Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups},
			}
		}
		if text, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		return nil
	}
	in := []uint32{group}
	must(t, as(30001, in, "put=one", "mark=one.verified"))
	must(t, as(30002, in, "read=one", "mark=one.verified", "read=one.verified", "put=two"))
	must(t, as(30001, in, "read=two", "delete=two", "put=three"))
	for name, want := range map[string]os.FileMode{
		"prod": os.ModeDir | os.ModeSetgid | 0o770, "prod/one": 0o640, "prod/one.verified": 0o640, "prod/three": 0o640,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %s, and not %s", name, info.Mode(), want)
		}
	}
	if os.Geteuid() != 0 {
		t.Log("the same user was both: only root can be two")
		return
	}
	if err := as(30003, []uint32{outside}, "read=one"); err == nil {
		t.Error("a user outside of the group can read a snapshot")
	}
}

func TestDirectoryWritableByOthersIsRefused(t *testing.T) {
	t.Parallel()
	groups, err := os.Getgroups()
	must(t, err)
	for mode, refused := range map[os.FileMode]bool{
		0o700: false, os.ModeSetgid | 0o770: false, 0o770: true, os.ModeSetgid | 0o777: true, 0o777: true,
		os.ModeSetgid | 0o772: true,
	} {
		d, err := OpenDirectory(sharedPlace(t, os.Getegid(), mode), "prod")
		if (err != nil) != refused {
			t.Errorf("mode %s: %v", mode, err)
		}
		if err == nil {
			d.Close()
		}
	}
	const stranger = 4242
	if os.Geteuid() == 0 && !slices.Contains(groups, stranger) { // only root can give a directory to another group
		if _, err := OpenDirectory(sharedPlace(t, stranger, os.ModeSetgid|0o770), "prod"); err == nil {
			t.Error("a directory is used that a group of others may write")
		}
	}
}
