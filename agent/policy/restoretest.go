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

// RestoreTest holds the last results of the cluster's restore tests. In a restore test, a separate etcd serves a
// restored snapshot.
type RestoreTest struct {
	Every  time.Duration // the interval; 0 if none is scheduled
	Passed bool          // a test has passed
	Age    time.Duration // time since a test last passed, by wall clocks; if none has, since this agent first saw that
	Failed *BackupFailure
}

// RestoreTestAbility is a host's ability to run restore tests.
type RestoreTestAbility string

// The values of RestoreTestAbility. The zero value means that the host cannot run restore tests.
const (
	RestoreTestReady  RestoreTestAbility = "ready"
	RestoreTestSealed RestoreTestAbility = "sealed"  // only the key to decrypt snapshots is missing
	RestoreTestNoRoom RestoreTestAbility = "no-room" // there is too little free space
)

// Spool is the directory on this host in which a restore is tested.
type Spool struct {
	Known   bool
	Free    uint64 // free bytes on the directory's file system
	Shared  bool   // the same file system also holds etcd's data or WAL
	Testing bool   // a restore test is running
}

const (
	// restoreTestEtcd is the space that the etcd of a restore test needs in addition to the database: for its WAL, and
	// for compacted data.
	restoreTestEtcd = 192 << 20
	// restoreTestFloor is the minimum space that a running restore test leaves free.
	restoreTestFloor = 64 << 20
	// restoreTestMargin is the space that a restore test leaves free on the file system of a member's data, in addition
	// to the space that the member itself may need.
	restoreTestMargin = 256 << 20
)

// RestoreTestRoom returns how many bytes must be free before a restore test of a database of that size begins, and how
// many it must leave free while it runs. If shared is set, a member's data is on the same file system: the test then
// leaves twice the size of the database and a margin free for the member.
func RestoreTestRoom(database uint64, shared bool) (begin, leave uint64) {
	begin, leave = 2*database+restoreTestEtcd, restoreTestFloor
	if shared {
		leave = 2*database + restoreTestMargin
		begin += leave
	}
	return begin, leave
}

// CanTestRestore returns this host's ability to run restore tests, given whether it has a backup store and the key to
// decrypt snapshots, if one is needed. An etcd older than the members' might be unable to read their database.
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

// hasRestoreTestRoom reports whether there is space for a restore test on this host to begin or continue. If the host
// has published that there is, an eighth less suffices, so that small changes of the free space do not change its
// record. On a host without a member, an unknown free space or database size counts as enough: the restore itself
// checks again.
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

// RestoreTestNote is the decision about restore tests. A restore test is not a step: it takes no lock and changes no
// member.
type RestoreTestNote struct {
	Run    bool   // this host runs a restore test now
	By     string // the host that runs the next test; empty if none can
	Sealed bool   // no host can run a test, only because the key is missing
	Due    time.Duration
	Text   string // when and where the next test is due, or what blocks it
	// End is why any restore test on this host is ended, whether scheduled or requested; empty if it may run.
	End string
	// EndScheduled is why a scheduled restore test on this host is ended; empty if it may run. It is End or, if that is
	// empty, a reason that does not end a requested test, because an operator chose the host of that test.
	EndScheduled string
}

// restoreTestRetry is the time until a failed restore test is repeated, unless the interval is shorter.
const restoreTestRetry = time.Hour

// noteRestoreTest decides about the next restore test, and about one that is running on this host.
func noteRestoreTest(v View) RestoreTestNote {
	n := nextRestoreTest(v)
	n.End = v.endRestoreTest()
	n.EndScheduled = cmp.Or(n.End, v.endScheduledRestoreTest())
	return n
}

// endRestoreTest returns why any restore test on this host must end: it takes CPU, memory and disk that this host's
// etcd needs.
func (v View) endRestoreTest() string {
	switch {
	case v.Op != nil && v.Op.Host == v.Self.ID:
		return fmt.Sprintf("this host is in an operation (%s)", v.Op.noun())
	case v.Spool.Testing && !v.hasRestoreTestRoom():
		return fmt.Sprintf("only %d MiB are free on this host's disk", v.Spool.Free>>20)
	}
	return ""
}

// endScheduledRestoreTest returns why a scheduled restore test on this host must end: a different host should run it.
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

// nextRestoreTest decides when the next restore test runs, and on which host: the one where the test costs the cluster
// the least.
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
		return RestoreTestNote{Sealed: true, Text: "no restore test: snapshots are encrypted, and no host that could " +
			"run a test has a recipient's key; set backup.identityFile on such a host"}
	}
	if len(fit) == 0 {
		return RestoreTestNote{Text: "no restore test: " + v.whyNoRestoreTest() +
			"; quorumctl snapshot test-restore runs one on any host"}
	}
	n := RestoreTestNote{By: fit[0].Name, Due: v.restoreTestDue()}
	if n.Due > 0 {
		n.Text = fmt.Sprintf("%s runs the next restore test in %s", n.By,
			durationfmt.Text(n.Due.Round(time.Minute)))
		return n
	}
	if why := v.restoreTestWaits(fit[0]); why != "" {
		n.Text = fmt.Sprintf("a restore test is due, but %s waits: %s", n.By, why)
		return n
	}
	n.Text = fmt.Sprintf("a restore test is due, and %s runs it", n.By)
	n.Run = fit[0].ID == v.Self.ID && v.Self.Mode == Manage
	return n
}

// restoreTestWaits returns why the best host does not run the restore test yet: a spare may have to join soon, and a
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

// restoreTesters returns the hosts with that ability that may run a restore test, best first. The host of a failed test
// comes last, because the host may be the cause.
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

// restoreTestBurden ranks hosts by how much a restore test there costs the cluster: a spare the least, then a standby,
// then a voter.
func (v View) restoreTestBurden(h Host) int {
	switch m, isMember := v.memberOf(h); {
	case !isMember:
		return 0
	case m.Learner:
		return 1
	}
	return 2
}

// againstRestoreTest returns why a host may not run a restore test, whatever its ability; empty if it may.
func (v View) againstRestoreTest(h Host) string {
	m, isMember := v.memberOf(h)
	led := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool { return m.Leader })
	switch {
	case !h.Manage:
		return "is in mode observe"
	case h.Wants != "" || h.InOperation || v.Op != nil && v.Op.Host == h.ID:
		return "is in an operation or has a request"
	case h.Health != health.OK:
		return "is " + h.Health.String()
	case !isMember && h.Role != RoleSpare, isMember && m.Learner && !m.Standby:
		return "is not a voter, a standby or a spare"
	case isMember && !m.Live:
		return "does not answer"
	case isMember && m.Leader:
		return "leads"
	case isMember && !led:
		return "is a member, but no leader is known"
	}
	return ""
}

// whyNoRestoreTest returns, for at most mostUnfit hosts, why each of them runs no restore test.
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

// mostUnfit limits the number of hosts that whyNoRestoreTest names. It exceeds the usual number of voters.
const mostUnfit = 9

func (v View) memberOf(h Host) (Member, bool) {
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == h.PeerURL && h.PeerURL != "" })
	if i < 0 {
		return Member{}, false
	}
	return v.Cluster.Members[i], true
}

// restoreTestDue returns the time until the next restore test. A test that a wrong clock dates in the future counts as
// equally far in the past.
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

// overdueAfter is the number of intervals after which the restore test is reported as overdue if none has passed. By
// then a failed test has been retried.
const overdueAfter = 3

// restoreTestOverdue reports whether no restore test has passed recently. It returns false while only the missing key
// prevents a test, because the alarm would never end. The status reports the missing key instead.
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

func restoreTestFailed(v View) (string, bool) {
	f := v.Backup.RestoreTest.Failed
	if f == nil {
		return "", false
	}
	return fmt.Sprintf("on %s: %s", f.Host, f.Text), true
}
