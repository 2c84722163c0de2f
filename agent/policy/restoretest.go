// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// RestoreTest is what is known about passed restore tests: a snapshot that an etcd of its own has served.
type RestoreTest struct {
	Every  time.Duration // the interval; 0 if none runs automatically
	Passed bool          // there is one
	Age    time.Duration // of the last one, by wall clocks; without one, since this agent observes
	Failed *BackupFailure
}

// RestoreTestAbility is whether a host can test a restore.
type RestoreTestAbility string

// The abilities. The zero value: it cannot.
const (
	RestoreTestReady  RestoreTestAbility = "ready"
	RestoreTestSealed RestoreTestAbility = "sealed"  // except for the key to decrypt snapshots
	RestoreTestNoRoom RestoreTestAbility = "no-room" // except for free space
)

// Spool is the directory on this host in which a restore is tested.
type Spool struct {
	Known   bool
	Free    uint64 // bytes on its file system
	Shared  bool   // that file system also holds etcd's data or log
	Testing bool   // a restore test runs there now
}

const (
	// restoreTestEtcd is what the etcd of a restore test writes in addition to the database: its log, and compacted
	// data.
	restoreTestEtcd = 192 << 20
	// restoreTestFloor is what a running restore test leaves free at least.
	restoreTestFloor = 64 << 20
	// restoreTestMargin is what a restore test leaves free on the file system of a member's data, in addition to what
	// the member may need for itself.
	restoreTestMargin = 256 << 20
)

// RestoreTestRoom returns how many bytes must be free before a restore test of a database of that size begins, and how
// many it must leave free while it runs. A member that shares the file system keeps room to double its database.
func RestoreTestRoom(database uint64, shared bool) (begin, leave uint64) {
	begin, leave = 2*database+restoreTestEtcd, restoreTestFloor
	if shared {
		leave = 2*database + restoreTestMargin
		begin += leave
	}
	return begin, leave
}

// CanTestRestore returns what a host publishes of its ability to test restores, given whether it has a store of
// snapshots and the key to read them, if one is needed. An etcd older than the members' may not understand their
// database.
func CanTestRestore(v View, store, key bool) RestoreTestAbility {
	older := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		return v.Self.Etcd.Major < m.Version.Major ||
			v.Self.Etcd.Major == m.Version.Major && v.Self.Etcd.Minor < m.Version.Minor
	})
	switch {
	case !store || older || !v.Self.Etcd.Known():
		return ""
	case !v.hasRestoreTestRoom():
		return RestoreTestNoRoom
	case !key:
		return RestoreTestSealed
	}
	return RestoreTestReady
}

// hasRestoreTestRoom reports whether a restore test may begin on this host, or continue. What was published as enough
// stays enough for an eighth less, so that the host's record is not rewritten with each file. A spare whose free bytes
// are not known counts as roomy: the restore itself looks again.
func (v View) hasRestoreTestRoom() bool {
	_, isMember := v.member()
	if !v.Spool.Known || v.Cluster.DBSize == 0 {
		return !isMember
	}
	begin, leave := RestoreTestRoom(v.Cluster.DBSize, isMember && v.Spool.Shared)
	published := slices.ContainsFunc(v.Hosts, func(h Host) bool { return h.Own && h.RestoreTests == RestoreTestReady })
	switch {
	case v.Spool.Testing:
		return v.Spool.Free >= leave
	case published:
		return v.Spool.Free >= begin-begin/8
	}
	return v.Spool.Free >= begin
}

// RestoreTestNote is what to do about restore tests. It is no step: it takes no lock and touches no member.
type RestoreTestNote struct {
	Run    bool   // now, by this host
	By     string // the host that runs the next one; empty if none can
	Sealed bool   // none can, only for lack of a key
	Due    time.Duration
	Text   string // when the next is due and on which host, or what blocks it
	// End is why any restore test that runs on this host is ended, scheduled or not; empty if it may run.
	End string
	// EndDue is why a scheduled one is ended. An operator's own continues: its host was chosen.
	EndScheduled string
}

// restoreTestRetry is the time between two attempts after a failed one, unless restore tests are due more often.
const restoreTestRetry = time.Hour

// noteRestoreTest decides about the next restore test, and about one that runs here.
func noteRestoreTest(v View) RestoreTestNote {
	n := nextRestoreTest(v)
	n.End = v.endRestoreTest()
	n.EndScheduled = cmp.Or(n.End, v.endScheduledRestoreTest())
	return n
}

// endRestoreTest returns why no restore test may run on this host any longer. It takes CPU, memory and disk that this
// host's etcd needs.
func (v View) endRestoreTest() string {
	switch {
	case v.Op != nil && v.Op.Host == v.Self.ID:
		return fmt.Sprintf("this host is in an operation (%s)", v.Op.Kind)
	case v.Spool.Testing && !v.hasRestoreTestRoom():
		return fmt.Sprintf("%d MiB are left free on this host's disk", v.Spool.Free>>20)
	}
	return ""
}

// endDueRestoreTest returns why a scheduled restore test may not run on this host any longer: another host is to run
// it.
func (v View) endScheduledRestoreTest() string {
	m, isMember := v.member()
	switch {
	case isMember && m.Leader:
		return "this host leads the cluster"
	case Unhealthy(v.Health.State), isMember && v.Health.State == health.Warm:
		return "this host is " + v.Health.State.String()
	}
	return ""
}

// nextRestoreTest decides which host runs the next restore test, and when: the one where it costs the cluster least.
func nextRestoreTest(v View) RestoreTestNote {
	d := v.Backup.RestoreTest
	switch {
	case d.Every == 0:
		return RestoreTestNote{}
	case !v.Cluster.Reachable || v.Cluster.Foreign():
		return RestoreTestNote{Text: "no restore test: the cluster cannot be reached from here"}
	case !v.Backup.HasSnapshot:
		return RestoreTestNote{Text: "no restore test: there is no snapshot yet"}
	}
	fit := v.restoreTesters(RestoreTestReady)
	if len(fit) == 0 && len(v.restoreTesters(RestoreTestSealed)) > 0 {
		return RestoreTestNote{Sealed: true, Text: "no restore test: snapshots are encrypted to recipients whose key " +
			"no host has that could run one; set backup.identityFile on one"}
	}
	if len(fit) == 0 {
		return RestoreTestNote{Text: "no restore test: " + v.whyNoRestoreTest() +
			"; quorumctl snapshot test-restore runs one on any host"}
	}
	n := RestoreTestNote{By: fit[0].Name, Due: v.restoreTestDue()}
	if n.Due > 0 {
		n.Text = fmt.Sprintf("the next restore test is in %s, by %s", durationfmt.Text(n.Due.Round(time.Minute)),
			n.By)
		return n
	}
	if keeps := v.restoreTestWaits(fit[0]); keeps != "" {
		n.Text = fmt.Sprintf("the next restore test is due, and %s waits: %s", n.By, keeps)
		return n
	}
	n.Text = fmt.Sprintf("the next restore test is due now, by %s", n.By)
	n.Run = fit[0].ID == v.Self.ID && v.Self.Mode == Manage
	return n
}

// keepsFromRestoreTest returns what the best host waits for with a restore test: a spare may be the next to join, and a
// member carries more load while another voter is unhealthy.
func (v View) restoreTestWaits(best Host) string {
	if v.Op != nil {
		return fmt.Sprintf("%s is in an operation", cmp.Or(v.Op.HostName, v.Op.Host))
	}
	for m := range v.Cluster.voters() {
		h, _ := v.hostOf(m)
		switch {
		case !m.Live:
			return fmt.Sprintf("voter %s does not answer", m.label())
		case v.isMember(best.PeerURL) && Unhealthy(h.Health):
			return fmt.Sprintf("voter %s is %s", m.label(), h.Health)
		}
	}
	return ""
}

// restoreTesters returns the hosts with that ability and without a veto against a restore test, best first. A host on
// which the last one failed comes last: the fault may be its own.
func (v View) restoreTesters(what RestoreTestAbility) []Host {
	list := slices.DeleteFunc(slices.Clone(v.Hosts), func(h Host) bool {
		return h.RestoreTests != what || v.againstRestoreTest(h) != ""
	})
	failed := func(h Host) int {
		if f := v.Backup.RestoreTest.Failed; f != nil && f.Host == h.Name {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(
			cmp.Compare(failed(a), failed(b)), cmp.Compare(v.restoreTestBurden(a), v.restoreTestBurden(b)),
			cmp.Compare(known(a.P99), known(b.P99)), cmp.Compare(a.ID, b.ID),
		)
	})
	return list
}

// restoreTestBurden orders hosts by what a restore test on one costs the cluster: a spare, then a standby, then a
// voter.
func (v View) restoreTestBurden(h Host) int {
	switch m, isMember := v.memberOf(h); {
	case !isMember:
		return 0
	case m.Learner:
		return 1
	}
	return 2
}

// againstRestoreTest returns why a host runs no restore test, whatever its ability; empty when it may.
func (v View) againstRestoreTest(h Host) string {
	m, isMember := v.memberOf(h)
	led := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return m.Leader })
	switch {
	case !h.Manage:
		return "is in mode observe"
	case h.Wants != "" || h.InOperation || v.Op != nil && v.Op.Host == h.ID:
		return "has other work"
	case h.Health != health.OK:
		return "is " + h.Health.String()
	case !isMember && h.Role != RoleSpare, isMember && m.Learner && !m.Standby:
		return "is joining or in maintenance"
	case isMember && !m.Live:
		return "does not answer"
	case isMember && m.Leader:
		return "leads"
	case isMember && !led:
		return "is a member, and no leader is known"
	}
	return ""
}

// restoreTestsNowhere returns for each host why it runs no restore test.
func (v View) whyNoRestoreTest() string {
	var all []string
	for _, h := range v.Hosts[:min(len(v.Hosts), mostUnfit)] {
		why := v.againstRestoreTest(h)
		switch {
		case why != "":
		case h.RestoreTests == RestoreTestNoRoom:
			why = "has too little free space under paths.state"
		default:
			why = "lacks backup.restoreTest, backup.store, or an etcd no older than the members'"
		}
		all = append(all, h.Name+" "+why)
	}
	if more := len(v.Hosts) - mostUnfit; more > 0 {
		all = append(all, fmt.Sprintf("%d more hosts", more))
	}
	return cmp.Or(strings.Join(all, ", "), "no host is known")
}

// mostUnfit is how many hosts a text names at most that run no restore test: more than there are voters.
const mostUnfit = 9

// memberOf returns the member that a host is.
func (v View) memberOf(h Host) (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == h.PeerURL && h.PeerURL != "" })
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// restoreTestDue returns when the next one is due. A time from the future counts like one that is as old.
func (v View) restoreTestDue() time.Duration {
	d := v.Backup.RestoreTest
	due := time.Duration(0)
	if d.Passed {
		due = max(0, d.Every-d.Age.Abs())
	}
	if d.Failed != nil {
		due = max(due, min(d.Every, restoreTestRetry)-d.Failed.Age.Abs())
	}
	return due
}

// unprovenAfter is after how many intervals it is reported: a failed one is retried many times until then.
const overdueAfter = 3

// restoreUnproven reports that no recent restore test passed, unless no host has the key: that is reported with the
// next one, and an alarm would never end.
func restoreTestOverdue(v View) (string, bool) {
	d := v.Backup.RestoreTest
	if d.Every == 0 || d.Age < overdueAfter*d.Every || noteRestoreTest(v).Sealed {
		return "", false
	}
	last := "no restore test has ever passed"
	if d.Passed {
		last = fmt.Sprintf("no restore test has passed for more than %s", durationfmt.Text(d.Age.Truncate(d.Every)))
	}
	return fmt.Sprintf(
		"%s; one is due every %s; %s",
		last,
		durationfmt.Text(d.Every),
		noteRestoreTest(v).Text,
	), true
}

// restoreFailed reports that the last restore test failed.
func restoreTestFailed(v View) (string, bool) {
	f := v.Backup.RestoreTest.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
