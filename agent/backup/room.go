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
	// spare is the minimum number of bytes that stay free next to a copy of the database: etcd preallocates 64 MB for
	// its log.
	spare = 128 << 20
	// spareMost limits the tenth of a large file system that is kept free.
	spareMost = 1 << 30
	// lookEvery is how many bytes are written between two checks of the free space, which other processes use too.
	lookEvery = 16 << 20
)

// ErrNoRoom means that a snapshot would use up space that other programs on the file system need. One of them may be
// etcd, which exits if it cannot write.
var ErrNoRoom = errors.New("there is too little free space")

// Space is the capacity of a file system, in bytes.
type Space struct {
	Free int64 // free space for users other than root
	Size int64 // 0 if the file system does not report it
}

// SpaceOf reads the space of a directory's file system.
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

// room is a reader of data for a file in a directory. It fails when too little space is left there.
type room struct {
	r      io.Reader
	dir    string
	space  func(dir string) (Space, error)
	remedy string
	size   int64 // expected size of the database; 0 if unknown

	given, looked int64 // bytes read, in total and at the last check of the space
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

// enough compares the free space with the bytes still to be written and the reserve. The reserve is a tenth of the file
// system up to spareMost, but at least spare plus what etcd needs to defragment: the size of the database.
func (r *room) enough() error {
	space, err := r.space(r.dir)
	if err != nil || space.Size <= 0 {
		return err
	}
	size := min(r.size, math.MaxInt64/4) // the manifest is untrusted, and no sum may overflow
	left := max(0, size-r.given)
	if need := left + max(size+spare, min(space.Size/10, spareMost)); space.Free < need {
		return fmt.Errorf("%w: %d MB free in %s, %d MB needed, to leave space for etcd: %s",
			ErrNoRoom, space.Free/1e6, r.dir, need/1e6+1, r.remedy)
	}
	return nil
}
