// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// restoreTestView returns the view of n5, the faster of two spares, in a cluster of three voters. A restore test passed
// 10 hours ago.
func restoreTestView() View {
	v := backedUp()
	for _, name := range []string{"n5", "n6"} {
		v.Hosts = append(v.Hosts, Host{
			ID: name, Name: name, Role: RoleSpare, Manage: true, Health: health.OK, RestoreTests: RestoreTestReady,
			P99: map[string]time.Duration{"n5": time.Millisecond, "n6": 2 * time.Millisecond}[name],
		})
	}
	v.Self.ID, v.Self.PeerURL = "n5", "http://n5"
	v.Backup.RestoreTest = RestoreTest{Every: 24 * time.Hour, Passed: true, Age: 10 * time.Hour}
	return v
}

// spares returns the two spares of restoreTestView.
func spares(v View) []Host { return v.Hosts[len(v.Hosts)-2:] }

func TestTheBestHostWithoutAMemberRunsADueRestoreTest(t *testing.T) {
	t.Parallel()
	due := func(v *View) { v.Backup.RestoreTest.Age = 25 * time.Hour }
	failed := func(host string, age time.Duration) func(*View) {
		return func(v *View) {
			due(v)
			v.Backup.RestoreTest.Failed = &BackupFailure{Host: host, Age: age}
		}
	}
	joins := func(host string) func(*View) {
		return func(v *View) {
			due(v)
			v.Op = &Op{Kind: KindJoin, Host: host}
		}
	}
	for name, c := range map[string]struct {
		change func(*View)
		run    bool
		text   string
	}{
		"not yet":                {func(*View) {}, false, "n5 runs the next restore test in 14h"},
		"due":                    {due, true, "is due, and n5 runs it"},
		"the first":              {func(v *View) { v.Backup.RestoreTest.Passed = false }, true, "due, and n5 runs it"},
		"off":                    {func(v *View) { due(v); v.Backup.RestoreTest.Every = 0 }, false, ""},
		"no window for snapshot": {func(v *View) { due(v); v.Backup.WindowOpen = false }, true, "due, and n5 runs it"},
		"paused":                 {func(v *View) { due(v); v.Pause = &Pause{} }, true, "due, and n5 runs it"},
		"observing":              {func(v *View) { due(v); v.Self.Mode = Observe }, false, "due, and n5 runs it"},
		"out of reach":           {func(v *View) { due(v); v.Cluster.Reachable = false }, false, "cannot be reached"},
		"no snapshot to test": {
			func(v *View) { due(v); v.Backup.HasSnapshot = false }, false, "there is no snapshot yet",
		},
		"maintenance is requested": {
			func(v *View) { due(v); spares(*v)[0].Wants = "maintenance" }, false, "due, and n6 runs it",
		},
		"joining":            {joins("n5"), false, "due, but n6 waits: n5 is in an operation"},
		"another host joins": {joins("n6"), false, "due, but n5 waits: n6 is in an operation"},
		"a voter is dead": {func(v *View) {
			due(v)
			v.Cluster.Members[1].Live = false
		}, false, "does not answer"},
		"unhealthy": {func(v *View) { due(v); spares(*v)[0].Health = health.Slow }, false, "due, and n6 runs it"},
		"joins":     {func(v *View) { due(v); spares(*v)[0].Role = RoleJoining }, false, "due, and n6 runs it"},
		"warm":      {func(v *View) { due(v); spares(*v)[0].Health = health.Warm }, false, "due, and n6 runs it"},
		"no free space": {
			func(v *View) { due(v); spares(*v)[0].RestoreTests = RestoreTestNoRoom }, false,
			"due, and n6 runs it",
		},
		"the host can no longer run it": {
			func(v *View) { due(v); spares(*v)[0].RestoreTests = "" }, false, "due, and n6 runs it",
		},
		"the host has no key": {
			func(v *View) { due(v); spares(*v)[0].RestoreTests = RestoreTestSealed }, false,
			"due, and n6 runs it",
		},
		"it observes": {
			func(v *View) { due(v); spares(*v)[0].Manage = false }, false, "due, and n6 runs it",
		},
		"failed on that host":    {failed("n5", 2*time.Hour), false, "due, and n6 runs it"},
		"failed on another host": {failed("n6", 2*time.Hour), true, "due, and n5 runs it"},
		"failed a moment ago":    {failed("n6", time.Minute), false, "n5 runs the next restore test in 59m"},
		"no key on any host": {func(v *View) {
			due(v)
			spares(*v)[0].RestoreTests, spares(*v)[1].RestoreTests = RestoreTestSealed, RestoreTestSealed
		}, false, "encrypted, and no host that could run a test has a recipient's key"},
		"no spare": {
			func(v *View) { due(v); v.Hosts = v.Hosts[:4] }, false,
			"quorumctl snapshot test-restore runs one",
		},
		"with a clock that was two days ahead": {func(v *View) {
			v.Backup.RestoreTest.Age = -48 * time.Hour
		}, true, "due, and n5 runs it"},
	} {
		v := restoreTestView()
		c.change(&v)
		if got := noteRestoreTest(v); got.Run != c.run || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, want %q", name, got, c.text)
		}
	}
}

// restoreTestMembers returns the view of host self in a cluster without spares: voters n1 to n3, led by n1, and standby
// n4. A restore test is due.
func restoreTestMembers(self string) View {
	v := restoreTestView()
	v.Hosts = v.Hosts[:len(v.Hosts)-2]
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Live = true
	}
	for i := range v.Hosts {
		v.Hosts[i].RestoreTests, v.Hosts[i].Health = RestoreTestReady, health.OK
	}
	v.Backup.RestoreTest.Age = 25 * time.Hour
	v.Self.ID, v.Self.PeerURL = "http://"+self, "http://"+self
	v.Health.State = health.OK
	return v
}

func TestWithoutASpareAMemberRunsTheRestoreTestAndNeverTheLeader(t *testing.T) {
	t.Parallel()
	voters := func(v *View) { // without a standby
		v.Hosts = v.Hosts[:3]
		v.Cluster.Members = v.Cluster.Members[:3]
	}
	full := func(v *View) {
		for i := range v.Hosts {
			v.Hosts[i].RestoreTests = RestoreTestNoRoom
		}
	}
	for name, c := range map[string]struct {
		change func(*View)
		by     string
		text   string
	}{
		"a standby is first": {func(*View) {}, "n4", "due, and n4 runs it"},
		"a voter is next":    {voters, "n3", "due, and n3 runs it"},
		"a voter is WARM": {
			func(v *View) { voters(v); v.Hosts[2].Health = health.Warm }, "n2", "due, and n2 runs it",
		},
		"a voter without free space": {
			func(v *View) { voters(v); v.Hosts[2].RestoreTests = RestoreTestNoRoom }, "n2", "due, and n2 runs it",
		},
		"the standby does not answer": {func(v *View) {
			v.Cluster.Members[3].Live = false
		}, "n3", "due, and n3 runs it"},
		"the learner is not a standby": {
			func(v *View) { v.Cluster.Members[3].Standby = false }, "n3", "due, and n3 runs it",
		},
		"another voter is slow": {func(v *View) {
			voters(v)
			v.Hosts[0].Health = health.Slow
		}, "", "due, but n3 waits: voter http://n1 is SLOW"},
		"no leader is known": {func(v *View) {
			v.Cluster.Members[0].Leader = false
		}, "", "is a member, but no leader is known"},
		"only the leader is healthy": {func(v *View) {
			voters(v)
			v.Hosts[1].Health, v.Hosts[2].Manage = health.Stalled, false
		}, "", "n1 leads, n2 is STALLED, n3 is in mode observe"},
		"no free space on any host": {func(v *View) {
			voters(v)
			full(v)
		}, "", "n1 leads, n2 has too little free space under paths.state, n3 has too little free space"},
	} {
		for _, self := range []string{"n1", "n2", "n3", "n4"} {
			v := restoreTestMembers(self)
			c.change(&v)
			if got := noteRestoreTest(v); got.Run != (c.by == self) || !strings.Contains(got.Text, c.text) {
				t.Errorf("%s, on %s: %+v, want %q by %q", name, self, got, c.text, c.by)
			}
		}
	}
}

// This test has three voters and a spare. It combines the health states and abilities of the three voters, and those of
// the last two voters and the spare, with each voter as the leader and with none.
func TestNoCombinationHasTwoHostsOrTheLeaderRunARestoreTest(t *testing.T) {
	t.Parallel()
	states := []health.State{health.OK, health.Warm, health.Slow}
	abilities := []RestoreTestAbility{RestoreTestReady, RestoreTestNoRoom, RestoreTestSealed, ""}
	kinds := len(states) * len(abilities)
	ran, all := 0, kinds*kinds*kinds
	for n := range all * 8 {
		leader := n / all % 4 // 3: no leader
		var runs []string
		for self := range 4 {
			v := restoreTestMembers("n1")
			v.Hosts[3].Role, v.Cluster.Members = RoleSpare, v.Cluster.Members[:3]
			for i, rest := 0, n%all; i < 3; i, rest = i+1, rest/kinds {
				at := i + n/(all*4) // hosts 0 to 2, or hosts 1 to 3 with the spare
				v.Hosts[at].Health = states[rest%len(states)]
				v.Hosts[at].RestoreTests = abilities[rest/len(states)%len(abilities)]
			}
			for i := range v.Cluster.Members {
				v.Cluster.Members[i].Leader = i == leader
			}
			v.Self.ID, v.Self.PeerURL, v.Health.State = v.Hosts[self].ID, v.Hosts[self].PeerURL, v.Hosts[self].Health
			note := noteRestoreTest(v)
			if !note.Run {
				continue
			}
			ran++
			runs = append(runs, v.Hosts[self].Name)
			own := v.Hosts[self]
			if self == leader && leader < 3 || own.Health != health.OK || own.RestoreTests != RestoreTestReady ||
				note.EndScheduled != "" {
				t.Errorf("case %d: %s runs it: %+v", n, v.Hosts[self].Name, note)
			}
		}
		if len(runs) > 1 {
			t.Errorf("case %d: %v run it at once", n, runs)
		}
	}
	if ran == 0 {
		t.Error("no host ever runs one")
	}
}

func TestARestoreTestEndsIfItsHostIsNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		self     string
		change   func(*View)
		end, due string
	}{
		"a follower":            {"n2", func(*View) {}, "", ""},
		"it leads now":          {"n1", func(*View) {}, "", "this host leads the cluster"},
		"it is WARM":            {"n2", func(v *View) { v.Health.State = health.Warm }, "", "this host is WARM"},
		"it is SLOW":            {"n4", func(v *View) { v.Health.State = health.Slow }, "", "this host is SLOW"},
		"its health is unknown": {"n2", func(v *View) { v.Health.State = health.Unknown }, "", ""},
		"no space is left": {"n2", func(v *View) {
			v.Spool = Spool{Known: true, Shared: true, Testing: true, Free: 400 << 20}
		}, "400 MiB are free", "400 MiB are free"},
		"enough space": {"n2", func(v *View) {
			v.Spool = Spool{Known: true, Shared: true, Testing: true, Free: 500 << 20}
		}, "", ""},
	} {
		v := restoreTestMembers(c.self)
		v.Cluster.DBSize = 100 << 20
		c.change(&v)
		if got := noteRestoreTest(v); !strings.Contains(got.End, c.end) || (c.end == "") != (got.End == "") ||
			!strings.Contains(got.EndScheduled, c.due) || (c.due == "") != (got.EndScheduled == "") {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.end, c.due)
		}
	}
}

func TestARestoreTestNeedsMoreFreeSpaceOnAMemberThanOnASpare(t *testing.T) {
	t.Parallel()
	spool := func(mib uint64, shared bool) Spool { return Spool{Known: true, Free: mib << 20, Shared: shared} }
	for name, c := range map[string]struct {
		self  string
		spool Spool
		own   RestoreTestAbility // the ability that the host has published
		want  RestoreTestAbility
	}{
		// A database of 100 MiB needs 392 MiB of free space, and 456 MiB more on the file system of a member's data.
		"a spare":                           {"n5", spool(392, true), "", RestoreTestReady},
		"a spare without space":             {"n5", spool(391, true), "", RestoreTestNoRoom},
		"a spare with unknown space":        {"n5", Spool{}, "", RestoreTestReady},
		"a member":                          {"n2", spool(848, true), "", RestoreTestReady},
		"a member without space":            {"n2", spool(847, true), "", RestoreTestNoRoom},
		"a member that had space":           {"n2", spool(847, true), RestoreTestReady, RestoreTestReady},
		"a member that had much more space": {"n2", spool(740, true), RestoreTestReady, RestoreTestNoRoom},
		"a member, another disk":            {"n2", spool(392, false), "", RestoreTestReady},
		"a member with unknown space":       {"n2", Spool{}, RestoreTestReady, RestoreTestNoRoom},
		"a member, during the test": {"n2", Spool{
			Known: true, Free: 456 << 20, Shared: true, Testing: true,
		}, "", RestoreTestReady},
	} {
		v := restoreTestMembers("n2")
		v.Self.Etcd, v.Cluster.DBSize, v.Spool = ParseVersion("3.6.16"), 100<<20, c.spool
		v.Hosts[1].Own, v.Hosts[1].RestoreTests = true, c.own
		v.Self.PeerURL = "http://" + c.self
		if got := CanTestRestore(v, true, true); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestARestoreTestEndsOnAHostInAnOperation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op  *Op
		end string
	}{
		"no host is in an operation":        {nil, ""},
		"another host is in an operation":   {&Op{Kind: KindJoin, Host: "n6"}, ""},
		"this host joins":                   {&Op{Kind: KindJoin, Host: "n5"}, "this host is in an operation (join)"},
		"this host is in its own operation": {&Op{Kind: KindCycle, Host: "n5"}, "this host is in an operation (cycle)"},
	} {
		for _, every := range []time.Duration{0, 24 * time.Hour} { // 0: only operators request tests
			v := restoreTestView()
			v.Op, v.Backup.RestoreTest.Every = c.op, every
			if n := noteRestoreTest(v); n.End != c.end || n.End != "" && n.Run {
				t.Errorf("%s, every %s: %+v, want an end because %q", name, every, n, c.end)
			}
		}
	}
}

func TestOnlyOneHostRunsARestoreTest(t *testing.T) {
	t.Parallel()
	runs := 0
	for _, h := range restoreTestView().Hosts {
		v := restoreTestView()
		v.Backup.RestoreTest.Passed, v.Self.ID, v.Self.PeerURL = false, h.ID, h.PeerURL
		if noteRestoreTest(v).Run {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%d hosts run it", runs)
	}
}

func TestAMissingRestoreTestIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*View)
		code   ReasonCode
		text   string
	}{
		"passed":               {func(*View) {}, "", ""},
		"it is almost overdue": {func(v *View) { v.Backup.RestoreTest.Age = 71 * time.Hour }, "", ""},
		"off": {
			func(v *View) { v.Backup.RestoreTest.Age, v.Backup.RestoreTest.Every = 99*time.Hour, 0 },
			"", "",
		},
		"no host has had the key for years": {
			func(v *View) { v.Backup.RestoreTest.Age = 9999 * time.Hour; seal(v) }, "", "",
		},
		"too late": {func(v *View) {
			v.Backup.RestoreTest.Age = 75 * time.Hour
		}, RestoreTestOverdue, "no restore test has passed for more than 3d; one is due every 1d"},
		"never": {func(v *View) {
			v.Backup.RestoreTest.Passed, v.Backup.RestoreTest.Age = false, 72*time.Hour
		}, RestoreTestOverdue, "no restore test has ever passed"},
		"failed": {func(v *View) {
			v.Backup.RestoreTest.Failed = &BackupFailure{Host: "n6", Text: "it is damaged"}
		}, RestoreTestFailed, "on n6: it is damaged"},
	} {
		v := restoreTestView()
		c.change(&v)
		reported := ""
		for _, r := range Decide(v).Reasons {
			if r.Code == RestoreTestOverdue || r.Code == RestoreTestFailed {
				reported = string(r.Code) + " " + r.Text
			}
		}
		if want := string(c.code); !strings.HasPrefix(reported, want) || want == "" && reported != "" ||
			!strings.Contains(reported, c.text) {
			t.Errorf("%s: %q, want %s %q", name, reported, c.code, c.text)
		}
	}
}

// seal makes both spares lack the decryption key.
func seal(v *View) {
	spares(*v)[0].RestoreTests, spares(*v)[1].RestoreTests = RestoreTestSealed, RestoreTestSealed
}

func TestARestoreTestNeedsAStoreAKeyAndAMatchingEtcd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		etcd       string
		store, key bool
		want       RestoreTestAbility
	}{
		"all": {"3.6.16", true, true, RestoreTestReady}, "newer": {"3.7.3", true, true, RestoreTestReady},
		"an older patch": {"3.6.2", true, true, RestoreTestReady}, "older": {"3.5.31", true, true, ""},
		"no store": {"3.6.16", false, true, ""}, "no key": {"3.6.16", true, false, RestoreTestSealed},
		"no etcd": {"", true, true, ""},
	} {
		v := restoreTestView()
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Version = ParseVersion("3.6.16")
		}
		v.Self.Etcd = ParseVersion(c.etcd)
		if got := CanTestRestore(v, c.store, c.key); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
