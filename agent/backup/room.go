// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sys/unix"
)

const (
	// spare is what is left free at least beside a copy of the database: etcd writes a file of 64 MB ahead of its log.
	spare = 128 << 20
	// spareMost bounds what a tenth of a large file system is.
	spareMost = 1 << 30
	// lookEvery is after how many bytes the free space is read again: others write there too.
	lookEvery = 16 << 20
)

// ErrNoRoom means that a snapshot would take the space that others on the file system need: etcd may be one of them,
// and it dies where it cannot write.
var ErrNoRoom = errors.New("there is too little free space")

// Space is what a file system has, in bytes.
type Space struct {
	Free int64 // for users that are not root
	Size int64 // 0 where the file system does not tell
}

// SpaceOf reads what the file system of a directory has.
func SpaceOf(dir string) (Space, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statfs(dir, &s)
	}
	if err != nil {
		return Space{}, fmt.Errorf("cannot read the free space of %s: %w", dir, err)
	}
	return Space{Free: int64(s.Bavail) * s.Bsize, Size: int64(s.Blocks) * s.Bsize}, nil
}

// room gives what will be written into a directory for as long as enough is left free there.
type room struct {
	r      io.Reader
	dir    string
	space  func(dir string) (Space, error)
	remedy string
	size   int64 // that the database has, as far as is known

	given, looked int64 // bytes, in all and when the space was read last
}

func (r *room) Read(p []byte) (int, error) {
	if r.given == 0 || r.given-r.looked >= lookEvery {
		if err := r.enough(); err != nil {
			return 0, err
		}
		r.looked = r.given
	}
	n, err := r.r.Read(p)
	r.given += int64(n)
	return n, err
}

// enough holds the free space against what is still to come and what must be left then: as much as the database again,
// as etcd needs it to defragment and its log grows meanwhile, and a tenth of a file system that is not large.
func (r *room) enough() error {
	space, err := r.space(r.dir)
	if err != nil || space.Size <= 0 {
		return err
	}
	size := min(r.size, math.MaxInt64/4) // a manifest is not trusted: no sum may overflow
	left := max(0, size-r.given)
	if need := left + max(size+spare, min(space.Size/10, spareMost)); space.Free < need {
		return fmt.Errorf("%w: %d MB free in %s, %d MB needed, to leave space for etcd: %s",
			ErrNoRoom, space.Free/1e6, r.dir, need/1e6+1, r.remedy)
	}
	return nil
}
