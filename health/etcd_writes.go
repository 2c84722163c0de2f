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

// What 99 of 100 of them have to stay under. etcd counts them in buckets that end at 1, 2, 4, 8, 16, 32 ms and so on:
// these are the first ends beyond the 10 and 25 ms of its guide. They are looked at over a span, and fewer than 300 say
// nothing of one in a hundred. What one burst leaves in a span is over before it counts.
const (
	etcdFsync, etcdFsyncLeave   = 16, 8  // ms
	etcdCommit, etcdCommitLeave = 32, 16 // ms
	etcdWritesSpan              = 5 * time.Minute
	etcdWritesBad               = 10 * time.Minute
	etcdWritesFewest            = 300
)

// declareEtcdFsync declares the check of how long etcd waits for its log. It advises only: whether the disk is fit the
// probe tells, which is the same for all hosts and goes on when etcd is stuck.
func declareEtcdFsync() declaration {
	return writesOfEtcd("etcd-fsync", walFsyncSource, "syncs of its log",
		func(r EtcdReading) Histogram { return r.WALFsync },
		Limit{Of: "99th percentile of etcd's own syncs", Unit: "ms", Enter: etcdFsync, Leave: etcdFsyncLeave},
		Problem{
			Code: EtcdFsyncSlow, Title: "etcd waits long for its log.",
			Meaning: "By its own count one in a hundred syncs of etcd's log is slower than its guide allows. Each " +
				"holds up the writes of all clients while this member leads.",
			Remedy: "look at 'quorumctl health' for the disk by itself; when that is well, other work on this host's " +
				"disk or processor is in the way ('iostat -x 1', 'pidstat -d 1')",
		})
}

// declareEtcdCommit declares the check of how long etcd waits for its database.
func declareEtcdCommit() declaration {
	return writesOfEtcd("etcd-commit", backendCommitSource, "commits of its database",
		func(r EtcdReading) Histogram { return r.BackendCommit },
		Limit{
			Of: "99th percentile of etcd's own commits", Unit: "ms", Enter: etcdCommit,
			Leave: etcdCommitLeave,
		},
		Problem{
			Code: EtcdCommitSlow, Title: "etcd waits long for its database.",
			Meaning: "By its own count one in a hundred commits of etcd's database is slower than its guide allows. " +
				"Reads wait for them, and a member that is slow at it falls behind.",
			Remedy: "look at 'quorumctl health' for the disk by itself; when that is well, the writes are large or " +
				"many: see 'etcdctl endpoint status' for the size, and which clients write most",
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
					return fmt.Sprintf("p99 of etcd's own %s in the last %s is %s, limit %.0f ms", what,
						show(etcdWritesSpan), p99, l.Enter)
				},
			}
		},
	}
}

// slowest gives what 99 of 100 have not exceeded since the beginning of the span for certain, in milliseconds.
func slowest(kept *Recent, at time.Duration, now Histogram) (Figure, Bucket) {
	grown, over := kept.Take(at, now, etcdWritesSpan)
	switch {
	case !now.Known:
		return Figure{Absent: now.Absent}, Bucket{}
	case over < etcdWritesSpan:
		return Figure{}, Bucket{} // it has not been looked at for long enough
	case grown.Count() < etcdWritesFewest:
		return Figure{Absent: "etcd has written too little to tell"}, Bucket{}
	}
	p99, _ := grown.Quantile(990)
	if p99.Upto == 0 {
		return Figure{Value: math.Inf(1), Known: true}, p99
	}
	return Figure{Value: float64(p99.Upto) / float64(time.Millisecond), Known: true}, p99
}
