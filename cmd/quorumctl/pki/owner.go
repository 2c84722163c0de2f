// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"io/fs"
	"slices"
	"strconv"
	"syscall"
)

// owners returns the users whose files are accepted: root, the current user and, if that is root, the user who called
// sudo. sudoUID is the value of SUDO_UID.
func owners(euid int, sudoUID string) []int {
	users := []int{0, euid}
	if uid, err := strconv.ParseUint(sudoUID, 10, 32); err == nil && euid == 0 {
		users = append(users, int(uid))
	}
	return users
}

// checkOwner refuses a file that belongs to a user who is not in users, or that other users can write.
func checkOwner(file string, info fs.FileInfo, users []int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !slices.Contains(users, int(stat.Uid)) {
		uid := "an unknown user"
		if ok {
			uid = "user " + strconv.FormatUint(uint64(stat.Uid), 10)
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
