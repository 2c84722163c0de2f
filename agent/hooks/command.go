// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A command is one program of commands.d that runs while this host is down. Its name may come from another host. The
// name selects one of the programs installed here, and cannot do more.

// namedDirs are the directories whose programs are run by name.
func namedDirs() map[string]string { return map[string]string{Command: "commands.d", Etcd: "etcd.d"} }

// BeginWithin is how long after its request a command may start. After that it never starts, so that the requester
// knows the outcome.
const BeginWithin = patience

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName returns an error if a command's name is invalid: it has letters, digits, "-" and "_", begins with a letter
// or a digit, and is at most 64 long.
func CheckName(name string) error {
	if !programName.MatchString(name) {
		return fmt.Errorf("%q is not a valid command name: letters, digits, - and _, at most 64, a letter or "+
			"digit first", plain(name))
	}
	return nil
}

// Find returns why the command of that name cannot run here, or nil. The error names the file.
func (r *Runner) Find(name string) error { return r.find(Command, name) }

func (r *Runner) find(when, name string) error {
	return find(filepath.Join(r.dir, namedDirs()[when]), name)
}

func find(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	info, err := os.Lstat(dir)
	if err == nil {
		err = trusted(dir, info, os.Geteuid())
	}
	if err == nil && info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is writable by group or others: chmod go-w", dir)
	}
	if err == nil {
		info, err = os.Lstat(path)
	}
	if err == nil {
		err = trusted(path, info, os.Geteuid())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot look at the program: %w; make it readable for quorumd", err)
	case err != nil:
		return err
	}
	if text := unfit(path); text != "" {
		return fmt.Errorf("%s: %s", path, text)
	}
	return nil
}

// trusted returns an error if an unauthorized user could change the file: its owner must be root or the user self, and
// it must not be a link, which could lead to a directory that others may write.
func trusted(path string, info fs.FileInfo, self int) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link, which is not followed: put what it leads to there", path)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != 0 && int(owner.Uid) != self {
		return fmt.Errorf("%s is not owned by root: chown root:root", path)
	}
	return nil
}

// unfit returns why a file must not run, or "".
func unfit(program string) string {
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return plain(err.Error())
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "not a program: make it executable (chmod +x), or move it away"
	case info.Mode()&0o022 != 0:
		return "it is writable by others than its owner: chmod go-w"
	}
	return ""
}

// tooLate reports whether it is too late to start a run. It is checked after the run was reported as running: if the
// agent has not seen that report when the time is over, the run never starts.
func tooLate(w wanted) (bool, error) {
	if w.Until == 0 {
		return false, nil
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return false, fmt.Errorf("cannot read the clock: %w", err)
	}
	return time.Duration(now.Nano()) > w.Until, nil
}
