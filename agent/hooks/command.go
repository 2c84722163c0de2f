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

// namedDirs maps an occasion to its directory, from which each run selects one program by name. The name of a command
// may come from a different host, but it can only select a program installed on this host.
func namedDirs() map[string]string { return map[string]string{Command: "commands.d", Etcd: "etcd.d"} }

// BeginWithin is how long after its request a run may take to begin. A command never starts later, so that the
// requester can rely on the outcome.
const BeginWithin = 15 * time.Second

var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName returns an error if the name of a command is invalid. A valid name has at most 64 letters, digits, "-" and
// "_", and begins with a letter or digit.
func CheckName(name string) error {
	if !programName.MatchString(name) {
		return fmt.Errorf("%q is not a valid command name: use at most 64 letters, digits, - and _, with a "+
			"letter or digit first", sanitize(name))
	}
	return nil
}

// Find returns why the command with that name cannot run on this host, or nil.
func (l *Launcher) Find(name string) error { return l.find(Command, name) }

func (l *Launcher) find(when, name string) error {
	return find(filepath.Join(l.dir, namedDirs()[when]), name)
}

func find(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	info, err := os.Lstat(dir)
	if err == nil {
		err = checkOwner(dir, info, os.Geteuid())
	}
	if err == nil && info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is writable by group or others: chmod go-w %s", dir, dir)
	}
	if err == nil {
		info, err = os.Lstat(path)
	}
	if err == nil {
		err = checkOwner(path, info, os.Geteuid())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot inspect the program: %w; let quorumd search its directory", err)
	case err != nil:
		return err
	}
	if text := whyNotRunnable(path); text != "" {
		return fmt.Errorf("%s: %s", path, text)
	}
	return nil
}

// checkOwner returns an error unless the file belongs to root or the user self. It must not be a symbolic link, whose
// target could be in a directory that other users may write.
func checkOwner(path string, info fs.FileInfo, self int) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link, which is not followed: replace it with its target", path)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != 0 && int(owner.Uid) != self {
		return fmt.Errorf("%s is not owned by root: chown root:root %s", path, path)
	}
	return nil
}

// whyNotRunnable returns why a program must not run, or "".
func whyNotRunnable(program string) string {
	info, err := os.Stat(program)
	switch {
	case err != nil:
		return sanitize(err.Error())
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return "not a program: make it executable (chmod +x), or move it away"
	case info.Mode()&0o022 != 0:
		return "it is writable by users other than its owner: chmod go-w " + sanitize(program)
	}
	return ""
}

// isTooLate reports whether the deadline to start a run has passed. The runner calls it after it has reported the run
// as Running. So if the agent finds no such report after the deadline, the run never starts.
func isTooLate(w request) (bool, error) {
	if w.Until == 0 {
		return false, nil
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return false, fmt.Errorf("cannot read the clock: %w", err)
	}
	return time.Duration(now.Nano()) > w.Until, nil
}
