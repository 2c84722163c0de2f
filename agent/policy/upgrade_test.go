// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// upgradeView is the view of n1 with three voters of this version.
func upgradeView(version string) View {
	v := voterView()
	v.Op = nil
	v.Cluster.Members = []Member{voter(1, "n1"), voter(2, "n2"), voter(3, "n3")}
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Version = ParseVersion(version)
	}
	return v
}

func TestAnUpgradeStartsOnlyFromHealthyMembersWhoseVersionsMayBeUpgraded(t *testing.T) {
	t.Parallel()
	member := func(i int, change func(m *Member)) func(*View) {
		return func(v *View) { change(&v.Cluster.Members[i]) }
	}
	is := func(i int, version string) func(*View) {
		return member(i, func(m *Member) { m.Version = ParseVersion(version) })
	}
	down, unknown := member(1, func(m *Member) { m.Live = false }), is(1, "")
	errors := member(1, func(m *Member) { m.Errors = true })
	slow := func(v *View) { v.Hosts[1].Health = health.Slow }
	alarm := func(v *View) { v.Cluster.Alarms = "NOSPACE" }
	for name, c := range map[string]struct {
		from, to string
		change   func(*View)
		want     string // part of the refusal; empty if the rollout may start
	}{
		"to the next minor version":         {"3.6.16", "3.7.3", nil, ""},
		"within a minor version":            {"3.6.12", "3.6.16", nil, ""},
		"a version that cannot be parsed":   {"3.6.16", "vendor", nil, ""},
		"to the next minor version but one": {"3.5.35", "3.7.3", nil, "3.6 first"},
		"to an untested version":            {"3.7.3", "3.8.0", nil, "tested with etcd up to 3.7"},
		"to a version with known faults":    {"3.5.35", "3.6.4", nil, "known faults"},
		"from 3.5 before 3.5.32":            {"3.5.31", "3.6.16", nil, "only 3.5.32 and newer"},
		"from 3.5.32":                       {"3.5.32", "3.6.16", nil, ""},
		"from 3.6 before 3.6.11":            {"3.6.10", "3.7.3", nil, "only 3.6.11 and newer"},
		"one member is too old":             {"3.6.16", "3.7.3", is(2, "3.5.35"), "n3 runs etcd 3.5.35"},
		"a member does not answer":          {"3.6.16", "3.7.3", down, "n2 does not"},
		"a member's version is unknown":     {"3.6.16", "3.7.3", unknown, "n2 does not answer"},
		"a member reports errors":           {"3.6.16", "3.7.3", errors, "errors"},
		"a host is unhealthy":               {"3.6.16", "3.7.3", slow, "SLOW"},
		"an alarm is raised":                {"3.6.16", "3.7.3", alarm, "NOSPACE"},
		"a patch while a member is down":    {"3.6.12", "3.6.16", down, ""},
		"the second of two is already new":  {"3.6.16", "3.7.3", is(1, "3.7.3"), ""},
		"back, one member is still old":     {"3.7.3", "3.6.16", is(0, "3.6.16"), ""},
		"back, one member is not upgraded, but down": {"3.7.3", "3.6.16", func(v *View) {
			is(0, "3.6.16")(v)
			v.Cluster.Members[0].Live = false
		}, "n1 does not answer, so it is unknown"},
		"back to a version with known faults": {"3.7.3", "3.6.11", is(0, "3.6.11"), ""},
		"back, no member is old":              {"3.7.3", "3.6.16", nil, "cluster version has been raised"},
	} {
		v := upgradeView(c.from)
		if c.change != nil {
			c.change(&v)
		}
		switch refusal := AgainstUpgrade(v, WorkCommand, c.to); {
		case refusal == nil && c.want != "":
			t.Errorf("%s: may start, want %q", name, c.want)
		case refusal != nil && (c.want == "" || !strings.Contains(refusal.Text+" "+refusal.Hint, c.want)):
			t.Errorf("%s: %q, want %q", name, refusal.Text, c.want)
		}
	}
	v := upgradeView("3.6.16")
	v.Op = &Op{Kind: KindCycle, HostName: "n2"}
	if AgainstUpgrade(v, WorkCommand, "3.7.3") == nil || AgainstUpgrade(v, WorkRestart, "3.6.16") != nil {
		t.Error("while n2 is taken down, an upgrade by a command is accepted, or other work is refused")
	}
	v = upgradeView("3.7.3")
	if v.Limits.AllowUnsafe = true; AgainstUpgrade(v, WorkCommand, "3.8.0") != nil {
		t.Error("an untested version is refused although the configuration allows it")
	}
}

// heldView is the view of n1, the last member with 3.6, when an upgrade to 3.7 has reached it.
func heldView() View {
	v := upgradeView("3.7.3")
	v.Cluster.Members[0].Version = ParseVersion("3.6.16")
	v.HostsFresh, v.Cluster.Fresh = true, true
	for i := range v.Hosts {
		v.Hosts[i].Manage, v.Hosts[i].Own = true, v.Hosts[i].ID == "n1"
	}
	v.Rollout = &Rollout{
		ID: "r1", Work: WorkCommand, Runs: true, Due: true, Waiting: []string{"n1"}, Upgrade: "3.7.3",
		WithoutSnapshot: true, Hold: true,
	}
	return v
}

func TestAnUpgradePausesBeforeTheLastMemberWithTheOlderVersion(t *testing.T) {
	t.Parallel()
	const why = "before n1, the last member with etcd 3.6: once it runs 3.7, no member can be rolled back"
	others := func(version string) func(*View) {
		return func(v *View) { v.Cluster.Members[2].Version = ParseVersion(version) }
	}
	for name, c := range map[string]struct {
		change func(*View)
		want   RequestChange
	}{
		"the last member":                 {func(*View) {}, RequestHeld},
		"another member is older":         {others("3.6.16"), RequestTurn},
		"another member's is unknown":     {others(""), RequestTurn}, // this host then waits: see upgradeHeld
		"an old learner is left":          {oldLearner, RequestTurn},
		"the operator has resumed it":     {func(v *View) { v.Rollout.Hold = false }, RequestTurn},
		"it is an upgrade to a patch":     {func(v *View) { v.Rollout.Upgrade = "3.6.17" }, RequestTurn},
		"this host has no member":         {func(v *View) { v.Cluster.Members = v.Cluster.Members[1:] }, RequestTurn},
		"the rollout is paused":           {func(v *View) { v.Rollout.Runs = false }, RequestStays},
		"the rollout is a rollback":       {func(v *View) { v.Rollout.Upgrade = "3.6.16" }, RequestTurn},
		"the version cannot be parsed":    {func(v *View) { v.Rollout.Upgrade = "vendor" }, RequestTurn},
		"its own version is not yet read": {func(v *View) { v.Cluster.Members[0].Version = Version{} }, RequestTurn},
	} {
		v := heldView()
		c.change(&v)
		note := rolloutTurn(v)
		if note.Change != c.want || note.Change == RequestHeld && note.Text != why {
			t.Errorf("%s: the change is %d, %q; want %d", name, note.Change, note.Text, c.want)
		}
	}
}

func oldLearner(v *View) {
	v.Cluster.Members = append(v.Cluster.Members,
		Member{ID: 4, Name: "n4", PeerURL: peerPrefix + "n4", Learner: true, Version: ParseVersion("3.6.16")})
}

func TestARequestThatHasNotBegunWaitsOnceItsMemberIsTheLastOne(t *testing.T) {
	t.Parallel()
	v := heldView()
	v.Asked = &Asked{Request: Request{Work: WorkCommand, Program: "up", By: "root", Reason: "a test"}, Rollout: "r1"}
	if note := noteRequest(v, Step{}); note.Change != RequestHeld {
		t.Errorf("the change is %d", note.Change)
	}
	if d, decided := cycle(v); !decided || d.Step.Kind != StepNone || !hasCode(d.Reasons, UpgradeHeld) {
		t.Errorf("%v: %v", d.Step, d.Reasons)
	}
	v.Cluster.Members[2].Version = Version{}
	if d, decided := cycle(v); !decided || d.Step.Kind != StepNone || !hasCode(d.Reasons, UpgradeHeld) ||
		noteRequest(v, Step{}).Change != RequestStays {
		t.Errorf("while the version of n3 is not known: %v: %v", d.Step, d.Reasons)
	}
	v.Cluster.Members[0].Version = Version{}
	if _, held := upgradeHeld(v); !held {
		t.Error("a host whose own version is unknown does not wait")
	}
	v.Asked.Begun, v.Asked.Seen = true, true
	if _, held := upgradeHeld(v); held {
		t.Error("an operation in flight waits")
	}
}

func TestAnUpgradePlanShowsThePauseAndThePointOfNoReturn(t *testing.T) {
	t.Parallel()
	v := upgradeView("3.6.16")
	v.Cluster.Members[0].Leader, v.Cluster.Members[1].Leader = false, true
	hosts := []RolloutHost{{ID: "n3", Name: "n3"}, {ID: "n2", Name: "n2"}, {ID: "n1", Name: "n1"}}
	for i := range hosts {
		hosts[i].PeerURL = peerPrefix + hosts[i].Name
	}
	var got []string
	for _, step := range UpgradePlan(v, hosts, "3.7.3", true) {
		got = append(got, step.Text)
	}
	want := `n1: etcd 3.6.16 stops, the command runs, and etcd starts as 3.7.3
n3: etcd 3.6.16 stops, the command runs, and etcd starts as 3.7.3
the rollout pauses; up to this point every host can be rolled back to etcd 3.6; quorumctl upgrade resume continues it
leadership is transferred from n2 to another voter
n2: etcd 3.6.16 stops, the command runs, and etcd starts as 3.7.3
the cluster version becomes 3.7 within seconds: no member can be rolled back`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the plan is:\n%s\nwant:\n%s", text, want)
	}
	part := UpgradePlan(v, hosts[:1], "3.7.3", true)
	if last := part[len(part)-1].Text; !strings.HasPrefix(last, "the cluster version is not raised") {
		t.Errorf("the plan for one host ends with %q", last)
	}
	if v.Cluster.Members[0].Version.String() != "3.6.16" {
		t.Error("the plan has changed the view")
	}
}

func TestAnUpgradeTo37WarnsAboutHostsWhoseLogIsNotChecked(t *testing.T) {
	t.Parallel()
	v := upgradeView("3.6.16")
	checked := RolloutHost{Name: "n1", Member: true, Next: NextEtcd{Version: "3.7.3"}}
	unchecked := RolloutHost{Name: "n2", Member: true}
	for name, c := range map[string]struct {
		v       View
		hosts   []RolloutHost
		version string
		want    string // part of the warning; empty for none
	}{
		"one host is not checked": {v, []RolloutHost{checked, unchecked}, "3.7.3", "on n2, wait until the newest file"},
		"all are checked":         {v, []RolloutHost{checked}, "3.7.3", ""},
		"within a minor version":  {v, []RolloutHost{unchecked}, "3.6.17", ""},
		"to 3.6":                  {upgradeView("3.5.35"), []RolloutHost{unchecked}, "3.6.16", ""},
	} {
		got := strings.Join(UpgradeWarnings(c.v, c.hosts, c.version), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: the warnings are %q", name, got)
		}
	}
}

func TestALogWithEntriesOfEtcd35KeepsEtcd37FromReplacingEtcd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		snapshot, old uint64
		want          string
	}{
		"no old entry": {100, 0, ""},
		"an old snapshot": {
			100, 120, "cannot read entry 120 of etcd's log, which etcd 3.5 wrote, and the newest snapshot covers the " +
				"log up to entry 100",
		},
		"no snapshot": {
			0, 7, "cannot read entry 7 of etcd's log, which etcd 3.5 wrote, and this member has saved no snapshot yet",
		},
	} {
		if problem, _, _ := strings.Cut(AgainstLog(c.snapshot, c.old), " → "); problem != c.want {
			t.Errorf("%s: %q", name, problem)
		}
	}
	for version, want := range map[string]bool{"3.6.17": false, "3.7.0": true, "3.7.3": true, "": false} {
		if NeedsNewLog(version) != want {
			t.Errorf("NeedsNewLog(%q) is %t", version, !want)
		}
	}
}

func TestAnUpgradeIsRefusedWhileAHostsNextEtcdDoesNotFit(t *testing.T) {
	t.Parallel()
	const problem = "does not start with --enable-v2, remove it"
	for name, c := range map[string]struct {
		next    NextEtcd
		version string
		want    string // part of the refusal; empty if the rollout may start
	}{
		"it is not configured":           {NextEtcd{}, "3.7.3", ""},
		"it accepts all settings":        {NextEtcd{Version: "3.7.3"}, "3.7.3", ""},
		"another version":                {NextEtcd{Version: "3.7.1"}, "3.7.3", "n2 is etcd 3.7.1, not 3.7.3"},
		"a setting is not known":         {NextEtcd{"3.7.3", problem}, "3.7.3", "etcd.nextBinary on n2 " + problem},
		"it is not checked yet":          {NextEtcd{Problem: "has not been checked yet"}, "3.7.3", "not been checked"},
		"the host is upgraded already":   {NextEtcd{"3.7.3", problem}, "3.6.16", ""},
		"the rollout is a rollback":      {NextEtcd{"3.7.3", problem}, "3.6.12", ""},
		"a patch, which may be a repair": {NextEtcd{"3.7.3", problem}, "3.6.17", ""},
	} {
		all := []RolloutHost{{ID: "2", Name: "n2", Manage: true, Member: true, Etcd: "3.6.16", Next: c.next}}
		_, refusal := RolloutHosts(all, nil, WorkCommand, c.version)
		if (refusal != nil) != (c.want != "") || refusal != nil && !strings.Contains(refusal.Text, c.want) {
			t.Errorf("%s: %v, want %q", name, refusal, c.want)
		}
	}
	hosts := []RolloutHost{
		{Name: "n1", Member: true},
		{Name: "n2", Member: true, Next: NextEtcd{Version: "3.7.3"}},
		{Name: "n3", Member: true, Skipped: true},
		{Name: "n4"},
	}
	if got := UncheckedHosts(hosts); len(got) != 1 || got[0] != "n1" {
		t.Errorf("the unchecked hosts are %v", got)
	}
}

func TestARollbackLeadsToTheOldestMembersVersion(t *testing.T) {
	t.Parallel()
	old, next := ParseVersion("3.6.16"), ParseVersion("3.7.3")
	if got := RollbackVersion([]Version{next, old, next}); got != old {
		t.Errorf("of two upgraded members and one that is not: %s", got)
	}
	if got := RollbackVersion([]Version{next, {}}); got.Known() {
		t.Errorf("with a member that does not answer: %s", got)
	}
}
