// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The two modes of the lock on a directory.
const (
	toRead   = unix.LOCK_SH // shared by readers
	toChange = unix.LOCK_EX // exclusive
)

// lock takes the flock of the CA directory, or fails at once if another process holds a conflicting lock. The kernel
// releases it when this process exits.
func lock(dir string, how int) (unlock func(), err error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noCA(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), how|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(refused("wait until it is done, then try again",
			"another 'quorumctl pki' is using %s", dir), d.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", dir, err), d.Close())
	}
	return func() {
		_ = unix.Flock(int(d.Fd()), unix.LOCK_UN) // a child that was forked meanwhile still has the file open
		_ = d.Close()                             // the directory was opened only for reading, so no data can be lost
	}, nil
}
