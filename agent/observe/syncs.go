// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

const (
	syncsSpan   = 5 * time.Minute
	syncsFewest = 100 // of fewer, the slowest alone would be 99 of 100
	syncsFew    = 20  // of these and more, up to syncsFewest, more than half have to be slow: no disk is that by chance
)

// slowSyncs takes what the local etcd has told last of its own syncs: a witness of how its disk is, beside the probe.
// It gives up to what 99 of 100 of the last minutes' took; 0 unless more than one in a hundred took longer than a limit
// for sure, or more than half of them where a disk is so slow that etcd counts few. etcd counts in buckets: one that
// the limit lies in proves nothing.
func slowSyncs(own *health.Recent, told health.EtcdReading, limit time.Duration) time.Duration {
	grown, _ := own.Take(told.At, told.WALFsync, syncsSpan)
	p99, _ := grown.Quantile(990)
	middle, _ := grown.Quantile(500)
	switch n := grown.Count(); {
	case n < syncsFew, n < syncsFewest && middle.Over < limit, p99.Over < limit:
		return 0
	}
	return max(p99.Over, p99.Upto)
}
