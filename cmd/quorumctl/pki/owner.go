// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"io/fs"
	"slices"
	"strconv"
	"syscall"
)

// owners gives the users whose files are taken: root, who runs this, and, where that is root, who has become root by
// sudo. sudoUID is what sudo says of that, or empty.
func owners(euid int, sudoUID string) []int {
	users := []int{0, euid}
	if uid, err := strconv.ParseUint(sudoUID, 10, 32); err == nil && euid == 0 {
		users = append(users, int(uid))
	}
	return users
}

// own refuses a file that somebody else may have written: one of another user, or into which others may write.
func own(file string, info fs.FileInfo, users []int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !slices.Contains(users, int(stat.Uid)) {
		uid := "an unknown user"
		if ok {
			uid = "the user " + strconv.FormatUint(uint64(stat.Uid), 10)
		}
		return refused("copy it here again as root or as the user who calls sudo; if you copied it yourself: "+
			"chown root: "+file, "%s belongs to %s, who can change it", file, uid)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return refused("copy it here again, then run chmod go-w "+file,
			"%s has mode %04o: other users may have changed it", file, mode)
	}
	return nil
}
