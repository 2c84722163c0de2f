// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/etcddb"
)

// TestChildIsConfinedBeforeItReadsAFile limits this test's process, too, to more than the other tests need.
func TestChildIsConfinedBeforeItReadsAFile(t *testing.T) {
	t.Parallel()
	if err := Main([]string{"no errand", t.TempDir(), ""}, io.Discard); err == nil {
		t.Error("an errand that there is not is no error")
	}
	for resource, want := range map[int]uint64{
		unix.RLIMIT_DATA: etcddb.HalfOfMemory(), unix.RLIMIT_CPU: uint64(copyBound.Seconds()),
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err != nil || limit.Cur > want || limit.Max < limit.Cur {
			t.Errorf("limit %d of the child is %d, want %d at most: %v", resource, limit.Cur, want, err)
		}
	}
}
