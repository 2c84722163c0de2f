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

// Command is the hidden subcommand that calls [Main]. Its argument is the path of the program to execute.
const Command = "run-check"

// maxLinks limits the symbolic links that are followed in a program's path.
const maxLinks = 20

// Main runs in the child. It checks the program and every directory in its path from top on, and executes the program
// in place of this process. It does so in a child because the program's disk may hang. It returns only with an error.
func Main(args []string, top string) error {
	// If memory is short, the kernel should kill the program and not the agent. This is best effort.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return execshim.Exec(args, func(path string) (string, error) { return resolve(path, top) })
}

// resolve follows symbolic links and returns the path of the file. It returns an error if a user other than root and
// the one that runs quorumd has write access to the file or to a directory in the path from top on, because that user
// could replace the program. Links are allowed because plugins are usually in /usr/lib/nagios/plugins.
func resolve(path, top string) (string, error) {
	at, left := "/", components(path)
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
			left = append(components(to), left...)
			continue
		case at == top || strings.HasPrefix(at, strings.TrimSuffix(top, "/")+"/"):
			if err := checkOwner(at, info); err != nil {
				return "", err
			}
		}
		if len(left) == 0 {
			return at, checkExecutable(info)
		}
		// Because at contains no link, resolving ".." lexically has the same result as in the kernel.
		at, left = filepath.Join(at, left[0]), left[1:]
	}
}

func components(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" })
}

// checkOwner returns an error if other users could change the file or directory. It also refuses a world-writable
// directory with the sticky bit, because a different user could create a file there after the program is removed.
func checkOwner(path string, info fs.FileInfo) error {
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is owned by neither root nor quorumd's user: chown root:root %s", path, path)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is writable by users other than its owner: chmod go-w %s", path, path)
	}
	return nil
}

// checkExecutable returns an error unless the file is an executable regular file.
func checkExecutable(info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return errors.New("not a program: make it executable (chmod +x), or move it away")
	}
	return nil
}
