// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"math"
	"time"
)

// The codes of the checks of how long etcd's own writes take.
const (
	EtcdFsyncSlow  Code = "ETCD_FSYNC_SLOW"
	EtcdCommitSlow Code = "ETCD_COMMIT_SLOW"
)

// The limits of the p99 of etcd's writes. The buckets of etcd's histograms end at 1, 2, 4, 8, 16, 32 ms and so on. The
// limits are the first bounds beyond the 10 and 25 ms in etcd's hardware guide. Fewer than 300 writes in a span are too
// few for a p99. A finding begins only after ten minutes, by which time a single burst is over.
const (
	etcdFsync, etcdFsyncLeave   = 16, 8  // ms
	etcdCommit, etcdCommitLeave = 32, 16 // ms
	etcdWritesSpan              = 5 * time.Minute
	etcdWritesBad               = 10 * time.Minute
	etcdWritesFewest            = 300
)

// checkEtcdFsync is the check of how long the WAL fsyncs of etcd take. It only advises, because the probe decides
// whether the disk is fit. The probe is the same on all hosts and keeps measuring when etcd hangs.
var checkEtcdFsync = advice{
	name: "etcd-fsync", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: walFsyncSource,
	limit:  Limit{Of: "p99 of etcd's WAL fsync", Unit: "ms", Enter: etcdFsync, Leave: etcdFsyncLeave},
	code:   EtcdFsyncSlow,
	title:  "etcd's WAL fsync is slow.",
	meaning: "etcd's own p99 of WAL fsyncs is above the limit of its hardware guide. While this member leads, each " +
		"slow fsync delays the writes of all clients.",
	remedy: "check the disk with 'quorumctl health'; if it is healthy, look for other workloads that use this host's " +
		"disk or CPU ('iostat -x 1', 'pidstat -d 1')",
	measure: writes("WAL fsync", func(r EtcdReading) Histogram { return r.WALFsync }),
}

// checkEtcdCommit is the check of how long the backend commits of etcd take.
var checkEtcdCommit = advice{
	name: "etcd-commit", component: Etcd, behind: []string{fsyncName, "cpu"},
	source: backendCommitSource,
	limit:  Limit{Of: "p99 of etcd's backend commit", Unit: "ms", Enter: etcdCommit, Leave: etcdCommitLeave},
	code:   EtcdCommitSlow,
	title:  "etcd's backend commit is slow.",
	meaning: "etcd's own p99 of backend commits is above the limit of its hardware guide. Reads wait for commits, " +
		"and a member with slow commits falls behind.",
	remedy: "check the disk with 'quorumctl health'; if it is healthy, the writes are too large or too many: check " +
		"the database size with 'etcdctl endpoint status' and find the clients that write most",
	measure: writes("backend commit", func(r EtcdReading) Histogram { return r.BackendCommit }),
}

const (
	walFsyncSource      = "etcd_disk_wal_fsync_duration_seconds" + etcdSource
	backendCommitSource = "etcd_disk_backend_commit_duration_seconds" + etcdSource
)

// writes returns the evidence of a check of one of etcd's histograms.
func writes(what string, of func(EtcdReading) Histogram) func(advice, *track) evidence {
	return func(a advice, at *track) evidence {
		kept, p99 := &Recent{}, Bucket{}
		return exceeds(etcdWritesBad, etcdWritesSpan, func(in Input) Figure {
			f, last := slowest(kept, in.Etcd.At, of(in.Etcd))
			if f.Known {
				p99 = last
			}
			return f
		}, func(_ float64, l Limit) string {
			return fmt.Sprintf("p99 of etcd's %s %s over the last %s, limit %.0f ms", what, p99, show(etcdWritesSpan),
				l.Enter)
		})(a, at)
	}
}

// slowest returns the upper bound, in milliseconds, of the bucket that contains the p99 of the writes within
// etcdWritesSpan, and that bucket. The upper bound of the last bucket is infinite.
func slowest(kept *Recent, at time.Duration, now Histogram) (Figure, Bucket) {
	grown, over := kept.Take(at, now, etcdWritesSpan)
	switch {
	case !now.Known:
		return Figure{Absent: now.Absent}, Bucket{}
	case over < etcdWritesSpan:
		return Figure{}, Bucket{} // etcd has not been read for long enough
	case grown.Count() < etcdWritesFewest:
		return Figure{Absent: "etcd has made too few writes for a p99"}, Bucket{}
	}
	p99, _ := grown.Quantile(990)
	if p99.Upto == 0 {
		return Figure{Value: math.Inf(1), Known: true}, p99
	}
	return Figure{Value: float64(p99.Upto) / float64(time.Millisecond), Known: true}, p99
}
