// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/etcddb"
)

// TestChildIsConfinedBeforeItReadsAFile also limits the process of the tests, but to more than the other tests need.
func TestChildIsConfinedBeforeItReadsAFile(t *testing.T) {
	t.Parallel()
	if err := Main([]string{"no-such-command", t.TempDir(), ""}, io.Discard); err == nil {
		t.Error("an unknown command is accepted")
	}
	for resource, want := range map[int]uint64{
		unix.RLIMIT_DATA: etcddb.HalfOfMemory(), unix.RLIMIT_CPU: uint64(maxCopyTime.Seconds()),
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err != nil || limit.Cur > want || limit.Max < limit.Cur {
			t.Errorf("limit %d of the child is %d, want %d at most: %v", resource, limit.Cur, want, err)
		}
	}
}
