// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// Backup is this host's view of the cluster's snapshots.
type Backup struct {
	HasStore    bool           // this host's configuration names a backup store
	Every       time.Duration  // the interval; 0: no automatic snapshots
	Spread      time.Duration  // how long before Every a snapshot is due; spreads the load on a shared store
	WindowOpen  bool           // the configured windows allow a snapshot now
	HasSnapshot bool           // a snapshot exists
	Age         time.Duration  // since the newest snapshot, by wall clocks, or for how long none has been observed
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
	Member uint64        // the member from which it is taken
	By     string        // the host that takes the next snapshot; empty if none can
	Due    time.Duration // time until the next snapshot; 0 or less if it is due
	Text   string        // when the next snapshot is due and which host takes it, or why none is taken
}

// backupRetry is the time until a failed attempt is retried, unless the snapshot interval is shorter.
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
		n.Text = fmt.Sprintf("%s takes the next snapshot in %s", n.By, durationfmt.Text(n.Due.Round(time.Minute)))
	case !v.Backup.WindowOpen && !first:
		n.Text = fmt.Sprintf("a snapshot is due, but %s waits for a window", n.By)
	default:
		n.Text = fmt.Sprintf("a snapshot is due, and %s takes it", n.By)
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

// backupDue returns the time until the next snapshot. If a snapshot is dated in the future, because a host's clock is
// wrong, the absolute difference counts as its age.
func (v View) backupDue() time.Duration {
	b := v.Backup
	_, first := snapshotFirst(v)
	due := time.Duration(0)
	if b.HasSnapshot && !first {
		due = max(0, b.Every-b.Spread-b.Age.Abs())
	}
	return max(due, b.retry())
}

// retry returns the time until a failed attempt may be retried; zero or less if it may be retried now.
func (b Backup) retry() time.Duration {
	switch {
	case b.Failed == nil:
		return 0
	case b.Every == 0: // no schedule: a rollout waits for this snapshot
		return backupRetry - b.Failed.Age.Abs()
	}
	return min(b.Every, backupRetry) - b.Failed.Age.Abs()
}

// backupOld reports whether no snapshot has been taken for two intervals. One missed snapshot is not reported.
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

// SnapshotSource returns the member to take a snapshot from: a standby or permanent learner, so that no voter carries
// the load; otherwise the healthiest follower; the leader only if it is the only voter. If there is no such member,
// SnapshotSource returns the reason.
func SnapshotSource(v View) (Member, string) {
	return snapshotSource(v, func(Member, Host) bool { return true })
}

func snapshotSource(v View, may func(Member, Host) bool) (Member, string) {
	if !v.Cluster.Reachable || v.Cluster.Foreign() {
		return Member{}, "the cluster cannot be reached from here"
	}
	voters, _ := v.Cluster.Counts()
	var fit []Member
	for _, m := range v.Cluster.Members {
		behind := m.Learner && (!m.Standby || !m.LagKnown || m.Lag > v.Limits.PromoteLag)
		if h, _ := v.hostOf(m); m.Live && !behind && (!m.Leader || voters == 1) && may(m, h) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return Member{}, "no standby or follower answers and is up to date, and the leader takes no snapshots"
	}
	return slices.MinFunc(fit, func(a, b Member) int {
		ah, _ := v.hostOf(a)
		bh, _ := v.hostOf(b)
		return cmp.Or(
			cmp.Compare(burden(a, ah), burden(b, bh)),
			cmp.Compare(known(ah.P99), known(bh.P99)),
			cmp.Compare(a.ID, b.ID),
		)
	}), ""
}

// burden ranks members by the load that reading the whole database from them puts on the cluster. A leader is compared
// only with learners.
func burden(m Member, h Host) int {
	switch {
	case m.Learner:
		return 0
	case blocks(h.Health, h.Ungated, health.Leadership):
		return 2
	}
	return 1
}

// freshFor is the maximum age of the newest snapshot when a rollout to a different etcd version begins or a healthy
// voter is removed.
const freshFor = time.Hour

// snapshotFirst reports whether a rollout to a different etcd version waits for a snapshot. The newest snapshot must be
// at most freshFor old when the rollout is started, and again when it is resumed, because an upgrade may have been
// paused for days. If an upgrade or a downgrade damages the data, only a snapshot brings it back. An operator may start
// the rollout without one. Repairs never wait.
func snapshotFirst(v View) (string, bool) {
	r := v.Rollout
	switch {
	case r == nil || !r.Runs || r.Upgrade == "" || r.WithoutSnapshot || len(r.Waiting) == 0 || !v.Backup.HasStore:
		return "", false
	case v.Backup.HasSnapshot && v.Backup.Age.Abs() <= freshFor+r.Began:
		return "", false
	}
	next := "the next host"
	for _, h := range v.Hosts {
		if h.ID == RolloutNext(v, r.Waiting) {
			next = cmp.Or(h.Name, h.ID)
		}
	}
	change := "upgraded"
	if r.Downgrade {
		change = "downgraded"
	}
	before := fmt.Sprintf("before etcd on %s is %s to %s", next, change, r.Upgrade)
	from, why := v.backupSource()
	if why != "" {
		return fmt.Sprintf("a snapshot is needed %s, but no host can take one: %s", before, why), true
	}
	taker, _ := v.hostOf(from)
	if f := v.Backup.Failed; f != nil {
		return fmt.Sprintf("a snapshot is needed %s, but %s failed to save it: %s; %s tries again in %s", before,
			f.Host, f.Text, taker.Name, durationfmt.Text(max(0, v.Backup.retry()).Round(time.Minute))), true
	}
	return fmt.Sprintf("%s takes a snapshot %s", taker.Name, before), true
}

func waitsForSnapshot(v View) bool {
	_, waits := snapshotFirst(v)
	return waits
}

// removalWants reports whether a requested removal requires a recent snapshot and there is none. The removal of a
// healthy voter requires one. Removing an unhealthy or dead voter repairs the cluster and, like the removal of a
// learner, requires none.
func removalWants(v View, r Removal) (string, bool) {
	m, _ := v.memberByID(r.MemberID)
	h, _ := v.hostOf(m)
	fresh := v.Backup.HasSnapshot && v.Backup.Age.Abs() <= freshFor
	if !v.Backup.HasStore || fresh || !r.Live || !m.Live || m.Learner || Unhealthy(h.Health) {
		return "", false
	}
	text := "there is no snapshot yet"
	if v.Backup.HasSnapshot {
		text = fmt.Sprintf("the newest snapshot is %s old; the limit is %s",
			durationfmt.Text(v.Backup.Age.Round(time.Minute)), durationfmt.Text(freshFor))
	}
	return text, true
}
