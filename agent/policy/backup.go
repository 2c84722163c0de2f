// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Backup is what is known of the cluster's snapshots.
type Backup struct {
	Stored bool          // there is a place for them
	Every  time.Duration // how old the newest may get; 0 when none is taken by itself
	Spread time.Duration // less than a tenth of that, another for each cluster: not all are due at once
	Open   bool          // by the windows of the configuration one may be taken now
	Saved  bool          // there is one
	Age    time.Duration // of the newest, by wall clocks; without one, since this agent looks
	Failed *BackupFailure
	Drill  RestoreTest
}

// BackupFailure is a snapshot that was tried in vain since the last one that was saved.
type BackupFailure struct {
	Host string
	Text string
	Age  time.Duration
}

// BackupNote says what is to be done about snapshots. It is no step: it takes no lock, and changes nothing.
type BackupNote struct {
	Take   bool   // now, by this host
	Member uint64 // of which
	By     string // the name of the host that takes the next one; empty when nobody can
	Due    time.Duration
	Text   string // when the next is due and who takes it, or what keeps it
}

// backupRetry is between two tries after one that failed, unless snapshots are due more often.
const backupRetry = 10 * time.Minute

// noteBackup decides who takes the next snapshot, and when: the host of the member that it costs least, so that the
// database does not cross the network to be written elsewhere. A pause does not keep it: that is when one is wanted.
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
	case !v.Backup.Open && !first:
		n.Text = fmt.Sprintf("the next snapshot is due, and %s waits for a window", n.By)
	default:
		n.Text = fmt.Sprintf("the next snapshot is due, by %s", n.By)
		n.Take = taker.PeerURL == v.Self.PeerURL && v.Self.Mode == Manage
	}
	return n
}

// backupSource gives the member of which a snapshot is taken by its own host, or tells why there is none.
func (v View) backupSource() (Member, string) {
	m, why := snapshotSource(v, func(_ Member, h Host) bool { return h.Manage && h.Stores })
	if why != "" && v.Backup.Stored {
		if _, any := snapshotSource(v, func(Member, Host) bool { return true }); any == "" {
			why = "no suitable host in mode manage reports that backup.store is set"
		}
	}
	return m, why
}

// backupDue gives in how long the next one is due. One that seems to come from the future was taken by a host whose
// clock is wrong: it counts for no longer than one that is as old.
func (v View) backupDue() time.Duration {
	b := v.Backup
	_, first := snapshotFirst(v)
	due := time.Duration(0)
	if b.Saved && !first {
		due = max(0, b.Every-b.Spread-b.Age.Abs())
	}
	return max(due, b.retry())
}

// retry gives in how long one that failed is tried again; nothing, or less, when it may be now.
func (b Backup) retry() time.Duration {
	switch {
	case b.Failed == nil:
		return 0
	case b.Every == 0: // a rollout waits for it
		return backupRetry - b.Failed.Age.Abs()
	}
	return min(b.Every, backupRetry) - b.Failed.Age.Abs()
}

// backupOld tells that the newest snapshot is twice as old as it should get, which leaves time for one that fails.
func backupOld(v View) (string, bool) {
	b := v.Backup
	switch {
	case b.Every == 0 || b.Age < 2*b.Every:
		return "", false
	case !b.Saved:
		return fmt.Sprintf("there is no snapshot; one is due every %s", durationfmt.Text(b.Every)), true
	}
	return fmt.Sprintf("the newest snapshot is more than %s old; one is due every %s",
		durationfmt.Text(b.Age.Truncate(b.Every)), durationfmt.Text(b.Every)), true
}

// backupFailed tells that the last snapshot that was tried was not saved.
func backupFailed(v View) (string, bool) {
	f := v.Backup.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
