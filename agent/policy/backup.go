// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Backup is what is known about the cluster's snapshots.
type Backup struct {
	HasStore      bool          // there is a store for them
	Every       time.Duration // the interval; 0 if none is taken automatically
	Spread      time.Duration // less than a tenth of that, different for each cluster: not all are due at once
	WindowOpen        bool          // the configured windows allow one now
	HasSnapshot       bool          // there is one
	Age         time.Duration // of the newest, by wall clocks; without one, since this agent observes
	Failed      *BackupFailure
	RestoreTest RestoreTest
}

// BackupFailure is a failed attempt since the last snapshot that was saved.
type BackupFailure struct {
	Host string
	Text string
	Age  time.Duration
}

// BackupNote is what to do about snapshots. It is no step: it takes no lock and changes nothing.
type BackupNote struct {
	Take   bool   // now, by this host
	Member uint64 // the source
	By     string // the host that takes the next one; empty if none can
	Due    time.Duration
	Text   string // when the next is due and which host takes it, or what blocks it
}

// backupRetry is the time between two attempts after a failed one, unless snapshots are due more often.
const backupRetry = 10 * time.Minute

// noteBackup decides which host takes the next snapshot, and when: the host of the member where it costs least, so that
// the database does not cross the network. A pause does not prevent it: an operator wants a snapshot then, too.
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

// backupSource returns the member whose host takes a snapshot of it, or why there is none.
func (v View) backupSource() (Member, string) {
	m, why := snapshotSource(v, func(_ Member, h Host) bool { return h.Manage && h.Stores })
	if why != "" && v.Backup.HasStore {
		if _, any := snapshotSource(v, func(Member, Host) bool { return true }); any == "" {
			why = "no suitable host in mode manage reports that backup.store is set"
		}
	}
	return m, why
}

// backupDue returns when the next one is due. One from the future was taken by a host whose clock is wrong: it counts
// like one that is as old.
func (v View) backupDue() time.Duration {
	b := v.Backup
	_, first := snapshotFirst(v)
	due := time.Duration(0)
	if b.HasSnapshot && !first {
		due = max(0, b.Every-b.Spread-b.Age.Abs())
	}
	return max(due, b.retry())
}

// retry returns when a failed one is retried; zero or less if it may be now.
func (b Backup) retry() time.Duration {
	switch {
	case b.Failed == nil:
		return 0
	case b.Every == 0: // a rollout waits for it
		return backupRetry - b.Failed.Age.Abs()
	}
	return min(b.Every, backupRetry) - b.Failed.Age.Abs()
}

// backupOld reports that the newest snapshot is twice as old as the interval, which leaves time for one failure.
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

// backupFailed reports that the last attempt at a snapshot failed.
func backupFailed(v View) (string, bool) {
	f := v.Backup.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
