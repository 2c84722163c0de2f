// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// jobTo returns a downgrade job that has been enabled for longer than etcd needs to lower the cluster version.
func jobTo(version string) DowngradeJob {
	return DowngradeJob{Enabled: true, Target: ParseVersion(version), For: time.Hour}
}

// managedView returns upgradeView with an agent in mode manage on every host.
func managedView(version string) View {
	v := upgradeView(version)
	for i := range v.Hosts {
		v.Hosts[i].Manage = true
	}
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Storage = ParseVersion(version).minor()
		v.Cluster.Members[i].LiveFor = time.Hour
	}
	return v
}

func TestADowngradeStartsOnlyIfEveryMemberCanFollow(t *testing.T) {
	t.Parallel()
	member := func(i int, change func(m *Member)) func(*View) {
		return func(v *View) { change(&v.Cluster.Members[i]) }
	}
	for name, c := range map[string]struct {
		to     string
		change func(*View)
		want   string // a part of the refusal; empty if the downgrade may start
	}{
		"to the preceding minor version": {"3.6.16", nil, ""},
		"by two minor versions": {
			"3.5.35", nil, "n1 runs etcd 3.7.3, and etcd is downgraded one minor",
		},
		"to the same minor version":      {"3.7.2", nil, "no member runs a newer minor version than 3.7"},
		"to a newer version":             {"3.8.0", nil, "known faults"},
		"to a version with known faults": {"3.6.4", nil, "known faults"},
		"to something else":              {"vendor", nil, "is not a version"},
		"a member runs the older one":    {"3.6.16", member(1, func(m *Member) { m.Version = oldest }), ""},
		"a member does not answer": {
			"3.6.16", member(1, func(m *Member) { m.Live = false }), "n2 does not answer",
		},
		"a member reports errors": {
			"3.6.16", member(1, func(m *Member) { m.Errors = true }), "reports errors",
		},
		"a host is unhealthy": {
			"3.6.16", func(v *View) { v.Hosts[1].Health = health.Slow }, "is SLOW",
		},
		"an agent only observes": {
			"3.6.16", func(v *View) { v.Hosts[1].Manage = false }, "does not run in mode manage",
		},
		"an agent is gone": {
			"3.6.16", func(v *View) { v.Hosts = v.Hosts[:2] }, "does not run in mode manage",
		},
		"an operation is in flight": {
			"3.6.16", func(v *View) { v.Op = &Op{HostName: "n4"} }, "of n4 is in flight",
		},
		"an operator has enabled the job": {"3.6.16", func(v *View) { v.Cluster.Job = jobTo("3.6.0") }, ""},
		"the job has another target": {
			"3.6.16", func(v *View) { v.Cluster.Job = jobTo("3.5.0") }, "job to 3.5.0",
		},
		"the job's target cannot be parsed": {
			"3.6.16", func(v *View) { v.Cluster.Job = jobTo("vendor") }, "job to unknown",
		},
		"an alarm is raised":             {"3.6.16", func(v *View) { v.Cluster.Alarms = "NOSPACE" }, "NOSPACE"},
		"to 3.4, which 3.5 cannot lower": {"3.4.40", nil, "cannot be downgraded to 3.4"},
		"two voters": {
			"3.6.16", func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }, "two voters",
		},
		"four voters": {
			"3.6.16", func(v *View) {
				v.Cluster.Members = append(v.Cluster.Members, v.Cluster.Members[2])
			}, "even number",
		},
	} {
		v := managedView("3.7.3")
		if c.change != nil {
			c.change(&v)
		}
		switch refusal := AgainstDowngrade(v, c.to); {
		case refusal == nil && c.want != "":
			t.Errorf("%s: may start, want %q", name, c.want)
		case refusal != nil && (c.want == "" || !strings.Contains(refusal.Text+" "+refusal.Hint, c.want)):
			t.Errorf("%s: %q, want %q", name, refusal.Text, c.want)
		}
	}
}

// oldest is the version to which the tests downgrade.
var oldest = ParseVersion("3.6.16")

// downgradeView returns the view of n1, which a downgrade to 3.6 has reached, while etcd's job is enabled and has done
// its work.
func downgradeView() View {
	v := managedView("3.7.3")
	v.HostsFresh, v.Cluster.Fresh = true, true
	v.Cluster.Job = jobTo("3.6.0")
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Storage = ParseVersion("3.6.0")
	}
	v.Rollout = &Rollout{
		ID: "r1", Work: WorkCommand, Runs: true, Due: true, Waiting: []string{"n1"}, Upgrade: "3.6.16", Downgrade: true,
		WithoutSnapshot: true, UnchangedFor: time.Hour,
	}
	v.Asked = &Asked{Request: Request{Work: WorkCommand, Program: "old"}, Rollout: "r1"}
	return v
}

func TestAHostIsTakenDownForADowngradeOnlyWhenTheOlderEtcdCanStart(t *testing.T) {
	t.Parallel()
	storage := func(i int, version string) func(*View) {
		return func(v *View) { v.Cluster.Members[i].Storage = ParseVersion(version) }
	}
	noJob := func(v *View) { v.Cluster.Job = DowngradeJob{For: time.Hour} }
	for name, c := range map[string]struct {
		change func(*View)
		want   string // a part of the reason to wait; empty if the host may be taken down
	}{
		"every member is ready":         {func(*View) {}, ""},
		"no job is enabled":             {noJob, "is not enabled yet"},
		"the job was enabled just now":  {func(v *View) { v.Cluster.Job.For = 5 * time.Second }, "up to 10s if every"},
		"a member answered just now":    {func(v *View) { v.Cluster.Members[2].LiveFor = 0 }, "up to 15s if every"},
		"a storage version is newer":    {storage(1, "3.7.0"), "that of n2 is 3.7"},
		"a storage version is unknown":  {storage(1, ""), "that of n2 is unknown"},
		"the job has another target":    {func(v *View) { v.Cluster.Job = jobTo("3.5.0") }, "is not enabled yet"},
		"another host's request":        {func(v *View) { v.Asked.Rollout = "r2" }, ""},
		"its own member is older":       {func(v *View) { noJob(v); v.Cluster.Members[0].Version = oldest }, ""},
		"without a job, another is old": {func(v *View) { noJob(v); v.Cluster.Members[1].Version = oldest }, ""},
		"it is an ordinary rollout":     {func(v *View) { noJob(v); v.Rollout.Downgrade = false }, ""},
	} {
		v := downgradeView()
		c.change(&v)
		why, waits := downgradeAwaited(v)
		if waits != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: waits %t: %q; want %q", name, waits, why, c.want)
		}
	}
}

func TestTheJobIsEnabledOnceAndCancelledOnlyIfItIsQuorumds(t *testing.T) {
	t.Parallel()
	enables := func(v *View) {
		v.Cluster.Job = DowngradeJob{For: time.Hour}
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Storage = ParseVersion("3.7.0")
		}
	}
	over := func(v *View) { v.Rollout.Runs, v.Rollout.Over, v.Rollout.Job = false, true, true }
	with := func(changes ...func(*View)) func(*View) {
		return func(v *View) {
			for _, change := range changes {
				change(v)
			}
		}
	}
	noJob := func(v *View) { v.Cluster.Job = DowngradeJob{For: time.Hour} }
	for name, c := range map[string]struct {
		change func(*View)
		want   StepKind
	}{
		"before the first host": {enables, StepEnableDowngrade},
		"the job is enabled":    {func(*View) {}, StepNone},
		"another host is next":  {with(enables, func(v *View) { v.Asked = nil }), StepNone},
		"the rollout is paused": {with(enables, func(v *View) { v.Rollout.Runs = false }), StepNone},
		"a member does not answer": {
			with(enables, func(v *View) { v.Cluster.Members[1].Live = false }), StepNone,
		},
		"a cancelled job has not been undone yet": {
			with(enables, func(v *View) { v.Cluster.Members[1].Storage = oldest }), StepNone,
		},
		"a learner is about to join":       {with(enables, oldLearner), StepNone},
		"the member list has just changed": {with(enables, func(v *View) { v.Cluster.StableFor = 0 }), StepNone},
		"an operation is in flight": {
			with(enables, func(v *View) { v.Op = &Op{Kind: KindJoin, Host: "n4"} }), StepNone,
		},
		"another agent holds the lock": {with(enables, func(v *View) { v.Lock.Mine = false }), StepNone},
		"a member is downgraded already": {
			with(enables, func(v *View) { v.Cluster.Members[1].Version = oldest }), StepNone,
		},
		"aborted": {over, StepCancelDowngrade},
		"aborted, and the job was enabled by an operator": {
			with(over, func(v *View) { v.Rollout.Job = false }), StepNone,
		},
		"aborted, and the job has another target": {
			with(over, func(v *View) { v.Cluster.Job = jobTo("3.5.0") }), StepNone,
		},
		"aborted, while a host is down": {
			with(over, func(v *View) { v.Op = &Op{Kind: KindCycle, Host: "n2"} }), StepNone,
		},
		"aborted, no job for an hour": {with(over, noJob), StepCancelDowngrade},
		"aborted, no job for a moment": {
			with(over, noJob, func(v *View) { v.Cluster.Job.For = 0 }), StepNone,
		},
		"aborted a moment ago, no job for an hour": {
			with(over, noJob, func(v *View) { v.Rollout.UnchangedFor = 0 }), StepNone,
		},
		"an ordinary rollout": {
			with(enables, func(v *View) { v.Rollout.Downgrade = false }), StepNone,
		},
		"the endpoints belong to another cluster": {
			with(enables, func(v *View) { v.Cluster.ExpectedID = 99 }), StepNone,
		},
		"no voter answers": {
			with(enables, func(v *View) { v.Cluster.Reachable = false }), StepNone,
		},
		"etcd ends the job after the last host": {func(v *View) { everyVersion(v, oldest) }, StepNone},
		"done, with a member that is still newer": {
			with(over, func(v *View) { v.Cluster.Members[0].Version = oldest }), StepCancelDowngrade,
		},
		"done, and the job has not ended yet": {with(over, func(v *View) { everyVersion(v, oldest) }), StepNone},
		"done long ago, no job":               {with(over, noJob, func(v *View) { everyVersion(v, oldest) }), StepNone},
		"there are two voters": {
			with(enables, func(v *View) { v.Cluster.Members = v.Cluster.Members[:2] }), StepNone,
		},
	} {
		v := downgradeView()
		v.Lock = Lock{Known: true, Held: true, Mine: true, Holder: "n1", Token: 7, ValidFor: time.Hour}
		c.change(&v)
		d, decided := downgradeJob(v)
		if d.Step.Kind != c.want || decided != (c.want != StepNone) {
			t.Errorf("%s: the step is %q, want %q", name, d.Step.Kind, c.want)
		}
		if v.Lock.Mine && c.want != StepNone {
			v.Lock = Lock{Known: true}
			if d, _ := downgradeJob(v); d.Step.Kind != StepTakeLock {
				t.Errorf("%s: without the lock, the step is %q", name, d.Step.Kind)
			}
		}
	}
}

func TestTheLockIsReleasedAfterEtcdHasRefusedTheJob(t *testing.T) {
	t.Parallel()
	v := downgradeView()
	v.Rollout.Runs, v.Rollout.Over, v.Rollout.Job = false, true, true
	v.Lock = Lock{Known: true, Held: true, Mine: true, Holder: "n1", Token: 7, ValidFor: time.Hour}
	v.Asked, v.Failed = nil, FailedStep{Kind: StepCancelDowngrade, Text: "refused"}
	if d := Decide(v); d.Step.Kind != StepReleaseLock {
		t.Errorf("the step is %q", d.Step.Kind)
	}
}

func TestAJobThatIsLeftIsReportedByEveryHostAndBlocksUpgrades(t *testing.T) {
	t.Parallel()
	running := downgradeView()
	if text, left := downgradeLeft(running); left {
		t.Errorf("while the downgrade runs: %s", text)
	}
	for name, change := range map[string]func(*View){
		"it has stopped":           func(v *View) { v.Rollout.Runs = false },
		"there is no rollout":      func(v *View) { v.Rollout = nil },
		"an ordinary rollout runs": func(v *View) { v.Rollout.Downgrade = false },
	} {
		v := downgradeView()
		change(&v)
		if r := Decide(v).Reasons; !hasCode(r, DowngradeEnabled) {
			t.Errorf("%s: the reasons are %v", name, r)
		}
	}
	v := managedView("3.6.16")
	v.Cluster.Job = jobTo("3.5.0")
	if r := AgainstUpgrade(v, WorkCommand, "3.7.3"); r == nil || r.Code != DowngradeEnabled {
		t.Errorf("an upgrade while the job is enabled: %v", r)
	}
}

func TestTheNextRolloutKeepsOrAwaitsTheLastOnesJob(t *testing.T) {
	t.Parallel()
	last := Rollout{Upgrade: "3.6.16", Downgrade: true, Job: true}
	over := last
	over.Over = true
	for name, c := range map[string]struct {
		last      Rollout
		version   string
		downgrade bool
		change    func(*View)
		refused   string
		keeps     bool
	}{
		"the same downgrade again": {last, "3.6.17", true, nil, "", true},
		"another downgrade": {
			last, "3.5.35", true, nil, "has enabled etcd's downgrade job", false,
		},
		"an upgrade": {
			last, "3.7.3", false, nil, "has enabled etcd's downgrade job", false,
		},
		"a reboot":                               {last, "", false, nil, "has enabled etcd's downgrade job", false},
		"a reboot after the abort":               {over, "", false, nil, "is being cancelled", false},
		"the same downgrade after the abort":     {over, "3.6.16", true, nil, "", true},
		"the last rollout has not enabled a job": {Rollout{Upgrade: "3.6.16"}, "", false, nil, "", false},
		"the last downgrade is done, and no job is enabled": {over, "3.5.35", true, func(v *View) {
			everyVersion(v, oldest)
			v.Cluster.Job = DowngradeJob{}
		}, "", false},
	} {
		v := downgradeView()
		if c.change != nil {
			c.change(&v)
		}
		refusal, keeps := AgainstJobLeft(v, c.last, c.version, c.downgrade)
		if keeps != c.keeps || (refusal != nil) != (c.refused != "") ||
			refusal != nil && !strings.Contains(refusal.Text, c.refused) {
			t.Errorf("%s: keeps %t, refused %v", name, keeps, refusal)
		}
	}
}

func TestMembersOf35HideTheJobSoQuorumdsNoteCounts(t *testing.T) {
	t.Parallel()
	v := downgradeView()
	v.Cluster.Job = DowngradeJob{For: time.Hour}
	v.Rollout.Upgrade, v.Rollout.Job = "3.5.35", true
	everyVersion(&v, ParseVersion("3.5.35"))
	v.Cluster.Members[2].Version = Version{} // n3 is down, and runs 3.6
	if _, shut := joinsShut(v); !shut {
		t.Error("hosts may join")
	}
	everyVersion(&v, ParseVersion("3.5.35"))
	if text, shut := joinsShut(v); shut {
		t.Errorf("every member is downgraded: %s", text)
	}
}

func everyVersion(v *View, version Version) {
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Version = version
	}
}

func TestNoNewMemberJoinsWhileTheJobIsEnabled(t *testing.T) {
	t.Parallel()
	v := managedView("3.7.3")
	v.Cluster.Job = jobTo("3.6.0")
	if why, holds := downgradeEnabled(v); holds {
		t.Errorf("a member waits: %s", why)
	}
	v.Cluster.Members = v.Cluster.Members[1:]
	if why, holds := downgradeEnabled(v); !holds || !strings.Contains(why, "downgrade to 3.6 is enabled") {
		t.Errorf("a host without a member waits %t: %q", holds, why)
	}
	for name, vetoes := range map[string][]veto{"join": vetoes(), "replacement": replaceVetoes()} {
		if reasons := against(v, vetoes); !hasCode(reasons, DowngradeEnabled) {
			t.Errorf("%s: the reasons are %v", name, reasons)
		}
	}
}

func TestThePlanOfADowngradeNamesItsJobAndEveryHost(t *testing.T) {
	t.Parallel()
	hosts := []RolloutHost{
		{ID: "n1", Name: "n1", Member: true, PeerURL: peerPrefix + "n1"},
		{ID: "n2", Name: "n2", Member: true, PeerURL: peerPrefix + "n2", Skipped: true},
		{ID: "n4", Name: "n4", PeerURL: peerPrefix + "n4"},
	}
	text := func(v View) string {
		var lines []string
		for _, s := range DowngradePlan(v, hosts, "3.6.16") {
			lines = append(lines, s.Text)
		}
		return strings.Join(lines, "\n")
	}
	const want = `etcd's downgrade job to 3.6 is enabled; until it has ended, no host can join
quorumd waits until the storage version of every member is 3.6
n4: the command runs; the host has no member
leadership is transferred from n1 to another voter
n1: etcd 3.7.3 stops, the command runs, and etcd starts as 3.6.16
etcd ends the downgrade job within seconds, and hosts can join again`
	v := managedView("3.7.3")
	v.Cluster.Members[0].Leader = true
	if got := text(v); got != want {
		t.Errorf("the plan is\n%s", got)
	}
	v.Cluster.Members[1].Version = oldest // the cluster version is 3.6 without a job
	if got := text(v); strings.Contains(got, "job") {
		t.Errorf("the plan without a job is\n%s", got)
	}
}
