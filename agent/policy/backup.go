// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Backup is what this host has observed about the cluster's snapshots.
type Backup struct {
	HasStore    bool           // this host's configuration names a backup store
	Every       time.Duration  // the interval; 0: no automatic snapshots
	Spread      time.Duration  // less than a tenth of Every, by cluster name: not all clusters are due at once
	WindowOpen  bool           // the configured windows allow a snapshot now
	HasSnapshot bool           // a snapshot exists
	Age         time.Duration  // of the newest snapshot, by wall clocks; without one, how long this agent has seen none
	Failed      *BackupFailure // nil if no attempt has failed since the newest snapshot
	RestoreTest RestoreTest
}

// BackupFailure is the last failed attempt to save a snapshot or to test a restore.
type BackupFailure struct {
	Host string
	Text string
	Age  time.Duration
}

// BackupNote is the decision about the next snapshot. Saving a snapshot is not a step: it needs no lock and changes
// nothing in the cluster.
type BackupNote struct {
	Take   bool          // this host takes a snapshot now
	Member uint64        // the source
	By     string        // the host that takes the next one; empty if none can
	Due    time.Duration // until the next one; 0 or less if it is due
	Text   string        // when the next is due and which host takes it, or what blocks it
}

// backupRetry is how long to wait after a failed attempt, unless snapshots are due more often.
const backupRetry = 10 * time.Minute

// noteBackup decides which host takes the next snapshot, and when. It picks the member that a snapshot disturbs least,
// and that member's own host takes it, so that the database does not cross the network. A pause does not prevent
// snapshots: an operator may need one then.
func noteBackup(v View) BackupNote {
	_, first := snapshotFirst(v)
	if v.Backup.Every == 0 && !first {
		return BackupNote{}
	}
	from, why := v.backupSource()
	if why != "" {
		return BackupNote{Text: "no host takes snapshots: " + why}
	}
	taker, _ := v.hostOf(from)
	n := BackupNote{Member: from.ID, By: taker.Name, Due: v.backupDue()}
	switch {
	case n.Due > 0:
		n.Text = fmt.Sprintf("the next snapshot is due in %s, by %s", durationfmt.Text(n.Due.Round(time.Minute)), n.By)
	case !v.Backup.WindowOpen && !first:
		n.Text = fmt.Sprintf("the next snapshot is due, and %s waits for a window", n.By)
	default:
		n.Text = fmt.Sprintf("the next snapshot is due, by %s", n.By)
		n.Take = taker.PeerURL == v.Self.PeerURL && v.Self.Mode == Manage
	}
	return n
}

// backupSource returns the member whose host takes the next snapshot, or why there is none.
func (v View) backupSource() (Member, string) {
	m, why := snapshotSource(v, func(_ Member, h Host) bool { return h.Manage && h.Stores })
	if why != "" && v.Backup.HasStore {
		if _, any := snapshotSource(v, func(Member, Host) bool { return true }); any == "" {
			why = "no suitable host in mode manage reports that backup.store is set"
		}
	}
	return m, why
}

// backupDue returns the time until the next snapshot. A snapshot dated in the future comes from a host with a wrong
// clock, and counts as equally far in the past.
func (v View) backupDue() time.Duration {
	b := v.Backup
	_, first := snapshotFirst(v)
	due := time.Duration(0)
	if b.HasSnapshot && !first {
		due = max(0, b.Every-b.Spread-b.Age.Abs())
	}
	return max(due, b.retry())
}

// retry returns the time until a failed attempt may be retried; zero or less if it may be now.
func (b Backup) retry() time.Duration {
	switch {
	case b.Failed == nil:
		return 0
	case b.Every == 0: // a rollout waits for it
		return backupRetry - b.Failed.Age.Abs()
	}
	return min(b.Every, backupRetry) - b.Failed.Age.Abs()
}

// backupOld reports whether the newest snapshot is older than two intervals: one failed attempt is not reported.
func backupOld(v View) (string, bool) {
	b := v.Backup
	switch {
	case b.Every == 0 || b.Age < 2*b.Every:
		return "", false
	case !b.HasSnapshot:
		return fmt.Sprintf("there is no snapshot; one is due every %s", durationfmt.Text(b.Every)), true
	}
	return fmt.Sprintf("the newest snapshot is more than %s old; one is due every %s",
		durationfmt.Text(b.Age.Truncate(b.Every)), durationfmt.Text(b.Every)), true
}

// backupFailed reports whether an attempt has failed since the newest snapshot.
func backupFailed(v View) (string, bool) {
	f := v.Backup.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
