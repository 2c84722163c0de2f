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

// maxLinks bounds how many links are followed on the way to a program.
const maxLinks = 20

// Main is what the child does: it becomes the program, if it is fit. It touches the disk on which the program lies, and
// the agent does not. Below top, every directory on the way is looked at. It returns only with an error.
func Main(args []string, top string) error {
	// The kernel should end the program, and not the agent, where memory is short. It is no promise: what cannot be
	// written stays as it is.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return execshim.Exec(args, func(path string) (string, error) { return fit(path, top) })
}

// fit gives the program behind a path, or why it is not run: somebody might change it who may not say what quorumd
// runs. Who may write a directory may exchange what is in it, and all that is below. A link is followed, as
// /usr/lib/nagios/plugins is where plugins lie.
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
		at, left = filepath.Join(at, left[0]), left[1:] // no link is left in at: ".." leads where the kernel goes
	}
}

// names gives the names on the way to a path.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" })
}

// owned tells why others could change what lies there. A directory in which all may write and nobody rename is none to
// run programs from: what is tidied away there may come back as somebody else's.
func owned(path string, info fs.FileInfo) error {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s does not belong to root: chown root:root", path)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("others than its owner may write %s: chmod go-w", path)
	}
	return nil
}

func executable(info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return errors.New("it is no program: make it executable (chmod +x), or move it away")
	}
	return nil
}
