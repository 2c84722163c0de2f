// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the symbolic links on the way to a program.
const maxLinks = 20

// Foreign is a file or directory through which an unauthorized user can replace a program.
type Foreign struct {
	Path, Who string // Who is, for example, "user alice"
	Remedy    string // the command that removes this access
}

// ProgramWriters checks whether a user other than root and the user with the ID self can replace a program. It returns
// the first file or directory in the program's path that such a user can write; nil if there is none. It follows
// symbolic links, and checks the path of each target. A directory with the sticky bit, such as /tmp, is allowed,
// because only the owner of a file there can replace it.
func ProgramWriters(path string, self int) (*Foreign, error) {
	accounts, err := readAccounts("/etc/passwd", "/etc/group")
	if err != nil {
		return nil, err
	}
	links := maxLinks
	return writers(path, self, accounts, &links)
}

func writers(path string, self int, a accounts, links *int) (*Foreign, error) {
	at := "/"
	for _, name := range append([]string{""}, strings.Split(strings.Trim(filepath.Clean(path), "/"), "/")...) {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if found := writer(at, info, self, a); found != nil {
			return found, nil
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if *links--; *links < 0 {
			return nil, fmt.Errorf("%s: too many symbolic links", path)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return nil, err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(at), target)
		}
		if found, err := writers(target, self, a, links); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// writer returns which user other than root and self can write a single file or directory; nil if there is none.
func writer(path string, info fs.FileInfo, self int, a accounts) *Foreign {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	if !ok {
		return &Foreign{path, "an unknown user", "chown root " + path}
	}
	if stat.Uid != 0 && int(stat.Uid) != self {
		return &Foreign{path, "user " + a.nameOf(stat.Uid), "chown root " + path}
	}
	sticky := mode.IsDir() && mode&fs.ModeSticky != 0
	if mode&fs.ModeSymlink != 0 || sticky || mode.Perm()&0o022 == 0 {
		return nil
	}
	k := key{path: path, mode: mode.Perm() & 0o022, uid: stat.Uid, gid: stat.Gid}
	if others := k.others(a.nameOf(uint32(self)), "", a); others != "" {
		return &Foreign{path, others, "chmod go-w " + path}
	}
	return nil
}
