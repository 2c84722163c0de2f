// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"hash/fnv"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// spreads is the number of possible start times of the snapshots, spread over a tenth of their interval. The name of
// the cluster selects one.
const spreads = 1000

// backup builds the view of the cluster's snapshots from the record of the last results.
func (b *Builder) backup(r *round.Round) policy.Backup {
	c := b.config.Backup
	every := time.Duration(c.Every)
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.config.Cluster.Name)) // never fails
	out := policy.Backup{
		Every: every, Spread: every / 10 / spreads * time.Duration(h.Sum32()%spreads), WindowOpen: c.Open(r.Wall),
	}
	out.RestoreTest, out.HasStore = b.restoreTest(r), c.Store.Directory != "" || c.Store.S3 != nil
	saved := r.Backup != nil && !r.Backup.Saved.IsZero()
	lacking := b.since.truth("no snapshot", !saved, r.At, r.Number)
	if saved {
		out.HasSnapshot, out.Age = true, r.Wall.Sub(r.Backup.Saved)
	} else {
		out.Age = lacking
	}
	if r.Backup != nil && !r.Backup.Failed.IsZero() {
		out.Failed = &policy.BackupFailure{
			Host: r.Backup.FailedHost, Text: r.Backup.Cause, Age: r.Wall.Sub(r.Backup.Failed),
		}
	}
	return out
}

// spoolOf builds the view of the directory for restore tests.
func spoolOf(r *round.Round) policy.Spool {
	if !r.Spool.OK {
		return policy.Spool{Testing: r.Spool.Value.Testing}
	}
	return r.Spool.Value
}

// restoreTest builds the view of the restore tests.
func (b *Builder) restoreTest(r *round.Round) policy.RestoreTest {
	out := policy.RestoreTest{Every: time.Duration(b.config.Backup.RestoreTest)}
	passed := r.RestoreTest != nil && !r.RestoreTest.RestoreTested.IsZero()
	out.Age = b.since.truth("no passed restore test", !passed, r.At, r.Number)
	if passed {
		out.Passed, out.Age = true, r.Wall.Sub(r.RestoreTest.RestoreTested)
	}
	if r.RestoreTest != nil && !r.RestoreTest.Failed.IsZero() {
		out.Failed = &policy.BackupFailure{
			Host: r.RestoreTest.FailedHost, Text: r.RestoreTest.Cause, Age: r.Wall.Sub(r.RestoreTest.Failed),
		}
	}
	return out
}
