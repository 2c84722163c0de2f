// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package externalcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/quorumd/quorumd/agent/execshim"
)

// Command is the hidden command that becomes one of the operator's programs: its path follows.
const Command = "run-check"

// maxLinks bounds how many symbolic links are followed on the way to a program.
const maxLinks = 20

// Main runs in the child and becomes the program, if it is safe. It accesses the program's disk, so that the agent does
// not. It checks every directory on the way below top. It returns only with an error.
func Main(args []string, top string) error {
	// If memory is short, the kernel should kill the program and not the agent. This is best effort: errors are
	// ignored.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return execshim.Exec(args, func(path string) (string, error) { return fit(path, top) })
}

// fit returns the file behind a path, or why it must not run: another user could change it, and so decide what quorumd
// runs. A user with write access to a directory can replace everything below it. Symbolic links are followed, as
// plugins are usually in /usr/lib/nagios/plugins.
func fit(path, top string) (string, error) {
	at, left := "/", names(path)
	for links := 0; ; {
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", errors.New("there is no " + at)
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", errors.New(path + " leads through too many links")
			}
			to, err := os.Readlink(at)
			if err != nil {
				return "", err
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = "/"
			}
			left = append(names(to), left...)
			continue
		case at == top || strings.HasPrefix(at, strings.TrimSuffix(top, "/")+"/"):
			if err := owned(at, info); err != nil {
				return "", err
			}
		}
		if len(left) == 0 {
			return at, executable(info)
		}
		// at has no link left, so the kernel resolves ".." in the same way
		at, left = filepath.Join(at, left[0]), left[1:]
	}
}

// names returns the components of a path.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" })
}

// owned returns an error if other users could change the file or directory. It refuses even a sticky directory that all
// may write: a file removed there may be replaced by another user's.
func owned(path string, info fs.FileInfo) error {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not owned by root: chown root:root", path)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is writable by others than its owner: chmod go-w", path)
	}
	return nil
}

func executable(info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return errors.New("not a program: make it executable (chmod +x), or move it away")
	}
	return nil
}
