// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// disk is a file system of a given size. Each byte read from the counter, if there is one, takes up a byte of it.
type disk struct {
	size, free int64
	from       *counter
}

func (d disk) space(string) (Space, error) {
	s := Space{Size: d.size, Free: d.free}
	if d.from != nil {
		s.Free -= d.from.n
	}
	return s, nil
}

// counter is an endless reader that counts the bytes read from it.
type counter struct{ n int64 }

func (c *counter) Read(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestSnapshotNeedsSpaceForTwiceItsDatabase(t *testing.T) {
	t.Parallel()
	const size = 300 << 20
	d, o := directory(t), options(t)
	for name, host := range map[string]disk{
		"room for one":                    {size: 4 << 30, free: size + spare},
		"a byte is missing":               {size: 4 << 30, free: 2*size + spare - 1},
		"less than a tenth would be left": {size: 10 << 30, free: size + spareMost - 1},
	} {
		o.Space = host.space
		from := &counter{}
		_, err := Save(t.Context(), d, Stream{Reader: from, Cluster: "prod", Host: "n1", Size: size}, o)
		if !errors.Is(err, ErrNoRoom) || from.n > 0 {
			t.Errorf("%s: %v, after %d bytes", name, err, from.n)
		}
		for _, want := range []string{" MB free in " + o.Spool, " MB needed", "set paths.state"} {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	left, err := os.ReadDir(o.Spool)
	must(t, err)
	if len(left)+len(files(t, d)) > 0 {
		t.Errorf("%v and %v are left", left, files(t, d))
	}
}

func TestSnapshotIsSavedAndVerifiedOnlyWithEnoughSpace(t *testing.T) {
	t.Parallel()
	d, o := directory(t), options(t)
	from := streamOf(rawSnapshot(t))
	from.Size = 1 << 20
	o.Space = disk{size: 1 << 30, free: 2*from.Size + spare}.space
	m, err := Save(t.Context(), d, from, o)
	must(t, err)
	o.Space = disk{size: 1 << 30, free: m.Size + spare}.space
	if err := Verify(t.Context(), d, m, o); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	o.Space = disk{size: 1 << 30, free: 2*m.Size + spare}.space
	must(t, Verify(t.Context(), d, m, o))
	lying := m
	lying.Size = math.MaxInt64
	if err := Verify(t.Context(), d, lying, o); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v", err)
	}
	o.Space = func(string) (Space, error) { return Space{}, nil } // a file system that does not report its size
	must(t, Verify(t.Context(), d, m, o))
}

func TestDatabaseLargerThanAnnouncedStopsBeforeTheDiskIsFull(t *testing.T) {
	t.Parallel()
	o := options(t)
	from := &counter{}
	const size = 8 << 20
	host := disk{size: 1 << 30, free: 2*size + spare + 40<<20, from: from}
	o.Space = host.space
	_, err := Save(t.Context(), directory(t), Stream{Reader: from, Cluster: "prod", Host: "n1", Size: size}, o)
	if left := host.free - from.n; !errors.Is(err, ErrNoRoom) || left < size+spare-lookEvery {
		t.Errorf("%v, with %d bytes left", err, left)
	}
}

func TestDirectoryIsNotFilledToTheLastByte(t *testing.T) {
	t.Parallel()
	from := &counter{}
	host := disk{size: 1 << 30, free: spare + 40<<20, from: from}
	d := directory(t)
	d.space = host.space
	err := d.Put(t.Context(), "large", io.LimitReader(from, 100<<20))
	if left := host.free - from.n; !errors.Is(err, ErrNoRoom) || left < spare-lookEvery ||
		!strings.Contains(err.Error(), "backup.store.directory") {
		t.Errorf("%v, with %d bytes left", err, left)
	}
	if left := files(t, d); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	must(t, d.PutIfAbsent(t.Context(), "small", []byte("verified\n")))
}

// unremovable is a store whose objects cannot be deleted, as if the agent ended at that moment.
type unremovable struct{ *Directory }

func (unremovable) Delete(context.Context, string) error { return errFull }

func TestVerificationMarkIsNeverMissing(t *testing.T) {
	t.Parallel()
	d := directory(t)
	m := Manifest{Name: "one"}
	for range 2 {
		must(t, MarkVerified(t.Context(), unremovable{d}, m))
		if there := files(t, d); len(there) != 1 || there[0] != "one"+verifiedEnding {
			t.Errorf("%v", there)
		}
	}
}
