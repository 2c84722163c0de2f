// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk/blockdevice"
)

// If the temporary directory is on a disk, the disk's writes must grow with the probe's.
func TestTheProbesWritesAreProgress(t *testing.T) {
	t.Parallel()
	devices, err := blockdevice.New("", "")
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, options(t))
	f.until("a sample", func() bool { return len(f.samples) > 0 })
	before, err := devices.Progress(f.last.Device)
	if errors.Is(err, blockdevice.ErrNone) && unix.Major(f.last.Device) == 0 {
		return // for example a tmpfs; the tests of package blockdevice cover the rest
	}
	if err != nil {
		t.Fatal(err)
	}
	had := len(f.samples)
	f.until("more samples", func() bool { return len(f.samples) > had+3 })
	if after, err := devices.Progress(f.last.Device); err != nil || after.Writes <= before.Writes {
		t.Errorf("from %+v to %+v, %v", before, after, err)
	}
}
