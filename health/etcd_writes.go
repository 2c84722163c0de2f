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

// The limits of their p99. The buckets of etcd's histograms end at 1, 2, 4, 8, 16, 32 ms and so on: these are the first
// bounds beyond the 10 and 25 ms of its hardware guide. Fewer than 300 writes in a span are too few for a p99. A single
// burst is over before the finding begins.
const (
	etcdFsync, etcdFsyncLeave   = 16, 8  // ms
	etcdCommit, etcdCommitLeave = 32, 16 // ms
	etcdWritesSpan              = 5 * time.Minute
	etcdWritesBad               = 10 * time.Minute
	etcdWritesFewest            = 300
)

// declareEtcdFsync declares the check of how long etcd waits for its log. It only advises: the probe decides whether
// the disk is fit. The probe is the same on all hosts and keeps measuring when etcd hangs.
func declareEtcdFsync() declaration {
	return writesOfEtcd("etcd-fsync", walFsyncSource, "WAL fsync",
		func(r EtcdReading) Histogram { return r.WALFsync },
		Limit{Of: "p99 of etcd's WAL fsync", Unit: "ms", Enter: etcdFsync, Leave: etcdFsyncLeave},
		Problem{
			Code: EtcdFsyncSlow, Title: "etcd's WAL fsync is slow.",
			Meaning: "etcd's own p99 of WAL fsyncs is above the limit of its hardware guide. While this member " +
				"leads, each slow fsync delays the writes of all clients.",
			Remedy: "check the disk with 'quorumctl health'; if it is healthy, other workloads compete for this " +
				"host's disk or CPU ('iostat -x 1', 'pidstat -d 1')",
		})
}

// declareEtcdCommit declares the check of how long etcd waits for its database.
func declareEtcdCommit() declaration {
	return writesOfEtcd("etcd-commit", backendCommitSource, "backend commit",
		func(r EtcdReading) Histogram { return r.BackendCommit },
		Limit{
			Of: "p99 of etcd's backend commit", Unit: "ms", Enter: etcdCommit,
			Leave: etcdCommitLeave,
		},
		Problem{
			Code: EtcdCommitSlow, Title: "etcd's backend commit is slow.",
			Meaning: "etcd's own p99 of backend commits is above the limit of its hardware guide. Reads wait for " +
				"commits, and a member with slow commits falls behind.",
			Remedy: "check the disk with 'quorumctl health'; if it is healthy, the writes are too large or too " +
				"many: check the database size with 'etcdctl endpoint status' and find the clients that write most",
		})
}

const (
	walFsyncSource      = "etcd_disk_wal_fsync_duration_seconds" + etcdSource
	backendCommitSource = "etcd_disk_backend_commit_duration_seconds" + etcdSource
)

// writesOfEtcd declares a check of one of etcd's histograms.
func writesOfEtcd(name, source, what string, of func(EtcdReading) Histogram, limit Limit, p Problem) declaration {
	p.Component, p.State = Etcd, Warm
	return declaration{
		Check: Check{
			Name: name, Component: Etcd, Gates: Nothing, Behind: []string{fsyncName, "cpu"}, Source: source,
			Limits: []Limit{limit}, Problems: []Problem{p}, Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			kept, p99 := &Recent{}, Bucket{}
			return &level{
				spell: spell{code: p.Code, track: at, badFor: etcdWritesBad, wellFor: etcdWritesSpan},
				limit: limit,
				of: func(in Input) (f Figure) {
					f, last := slowest(kept, in.Etcd.At, of(in.Etcd))
					if f.Known {
						p99 = last
					}
					return f
				},
				words: func(_ Figure, l Limit) string {
					return fmt.Sprintf("p99 of etcd's %s %s over the last %s, limit %.0f ms", what, p99,
						show(etcdWritesSpan), l.Enter)
				},
			}
		},
	}
}

// slowest returns the time that the p99 since the start of the span certainly exceeded, in milliseconds.
func slowest(kept *Recent, at time.Duration, now Histogram) (Figure, Bucket) {
	grown, over := kept.Take(at, now, etcdWritesSpan)
	switch {
	case !now.Known:
		return Figure{Absent: now.Absent}, Bucket{}
	case over < etcdWritesSpan:
		return Figure{}, Bucket{} // it has not been read for long enough
	case grown.Count() < etcdWritesFewest:
		return Figure{Absent: "too few writes of etcd to judge"}, Bucket{}
	}
	p99, _ := grown.Quantile(990)
	if p99.Upto == 0 {
		return Figure{Value: math.Inf(1), Known: true}, p99
	}
	return Figure{Value: float64(p99.Upto) / float64(time.Millisecond), Known: true}, p99
}
