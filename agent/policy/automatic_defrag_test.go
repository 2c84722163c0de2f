// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

const mib = 1 << 20

// fragmentedView is the view of n3, a follower, in an open maintenance window. Half of every database is free.
func fragmentedView() View {
	v := turnView()
	v.Asked, v.Op, v.Lock, v.Rollout, v.HostsFresh = nil, nil, Lock{Known: true}, nil, true
	v.IdleFor = time.Hour
	v.Data.Free, v.Data.FreeKnown = 1<<40, true
	v.Cluster.Intact, v.Cluster.Roomy, v.Cluster.Fresh = true, true, true
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Database = Database{Size: 800 * mib, InUse: 400 * mib, Quota: 2048 * mib}
	}
	for i := range v.Hosts {
		v.Hosts[i].Health, v.Hosts[i].Wants = health.OK, ""
	}
	v.Space.Automatic = AutomaticDefrag{Windows: true, Ended: Never, DueFor: time.Hour}
	return v
}

// sized sets the database of n3.
func sized(size, inUse int64) func(v *View) {
	return func(v *View) {
		v.Cluster.Members[2].Database = Database{Size: size * mib, InUse: inUse * mib, Quota: 2048 * mib}
	}
}

func TestAnAgentRequestsTheDefragmentationOfItsOwnMemberWhenItIsWorthIt(t *testing.T) {
	t.Parallel()
	full := sized(1900, 1000)
	for name, c := range map[string]struct {
		want   bool
		change []func(v *View)
	}{
		"much of the file is free, in a window": {true, nil},
		"it is the leader, and other databases are worth it too": {false, []func(v *View){func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
			v.Space.Automatic.DueFor = leaderDefragDueFor - 1
		}}},
		"it is the leader, and has waited for the others": {true, []func(v *View){func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
		}}},
		"it is the leader, and the last one": {true, []func(v *View){func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
			v.Space.Automatic.DueFor = defragDueFor
			for i := range 2 {
				v.Cluster.Members[i].Database.Size = 400 * mib
			}
		}}},
		"it has just become due": {false, []func(v *View){func(v *View) {
			v.Space.Automatic.DueFor = defragDueFor - 1
		}}},
		"no window is open": {false, []func(v *View){shut}},
		"the configuration does not allow it": {false, []func(v *View){func(v *View) {
			v.Space.Automatic.Windows = false
		}}},
		"only NOSPACE remediation is allowed": {false, []func(v *View){remediates}},
		"little is free":                      {false, []func(v *View){sized(800, 601)}},
		"a small part of the file is free": {false, []func(v *View){
			sized(1600, 1000),
		}},
		"at 80 % of the quota, a small part suffices":                {true, []func(v *View){sized(1639, 1600)}},
		"at 80 % of the quota, 31 MiB do not suffice":                {false, []func(v *View){sized(1639, 1608)}},
		"80 % of the quota, and no window is open":                   {false, []func(v *View){sized(1639, 1600), shut}},
		"90 % of the quota, and no window is open":                   {true, []func(v *View){full, shut}},
		"90 % of the quota, and only NOSPACE remediation is allowed": {true, []func(v *View){full, remediates}},
		"90 % of the quota, and a rollout runs":                      {true, []func(v *View){full, rolling}},
		"half of the file is free, and a rollout runs":               {false, []func(v *View){rolling}},
		"neither windows nor remediation are allowed": {false, []func(v *View){full, remediates, func(v *View) {
			v.Space.Remediate = false
		}}},
		"the data in use fills the quota": {false, []func(v *View){sized(2000, 1844)}},
		"it would soon be due again":      {false, []func(v *View){sized(1900, 1750), shut}},
		"a newer minor version is installed": {false, []func(v *View){full, func(v *View) {
			v.Self.Etcd = Version{Major: 3, Minor: 7, Patch: 3}
		}}},
		"the installed version is unknown": {false, []func(v *View){full, func(v *View) {
			v.Self.Etcd = Version{}
		}}},
		"the size is unknown":                        {false, []func(v *View){sized(0, 0)}},
		"the part in use is unknown":                 {false, []func(v *View){sized(800, 0)}},
		"the part in use is larger than the file":    {false, []func(v *View){sized(2000, 2001)}},
		"the last request ended a day ago":           {true, []func(v *View){ended(defragEvery)}},
		"the last request ended less than a day ago": {false, []func(v *View){ended(defragEvery - 1)}},
		"90 % of the quota, an hour after the last request": {
			true, []func(v *View){full, ended(defragFullEvery)},
		},
		"90 % of the quota, less than an hour after the last request": {
			false, []func(v *View){full, ended(defragFullEvery - 1)},
		},
		"the disk is too full for the new file": {false, []func(v *View){func(v *View) {
			v.Data.Free = 463 * mib
		}}},
		"the disk does not answer":    {false, []func(v *View){func(v *View) { v.Data.FreeKnown = false }}},
		"the NOSPACE alarm is raised": {false, []func(v *View){full, func(v *View) { v.Cluster.Roomy = false }}},
		"members may differ":          {false, []func(v *View){func(v *View) { v.Cluster.Intact = false }}},
		"another host is down": {false, []func(v *View){func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown, Token: 7}
		}}},
		"another host waits": {false, []func(v *View){func(v *View) {
			v.Hosts[1].Wants, v.Hosts[1].AskedAt = WorkReboot, 7
		}}},
		"a voter is down": {
			false, []func(v *View){func(v *View) { v.Cluster.Members[1].Live = false }},
		},
		"the cluster is paused":            {false, []func(v *View){func(v *View) { v.Pause = &Pause{By: "ann"} }}},
		"it only observes":                 {false, []func(v *View){func(v *View) { v.Self.Mode = Observe }}},
		"another program manages its etcd": {false, []func(v *View){func(v *View) { v.Self.Drives = false }}},
		"a record is unreadable": {false, []func(v *View){func(v *View) {
			v.Unreadable = []Unreadable{{Kind: RecordRollout}}
		}}},
	} {
		v := fragmentedView()
		for _, change := range c.change {
			change(&v)
		}
		note := Decide(v).Notes.Request
		if got := note.Change == RequestDefrag; got != c.want {
			t.Errorf("%s: the agent requests a defragmentation: %t, %+v", name, got, note)
		}
	}
}

func shut(v *View) { v.Space.Automatic.Shut = "no maintenance window is open" }

func remediates(v *View) { v.Space.Automatic.Windows, v.Space.Remediate = false, true }
func rolling(v *View) {
	v.Rollout = &Rollout{ID: "r", Work: WorkRestart, Runs: true, Waiting: []string{"n1"}}
}

func ended(ago time.Duration) func(v *View) {
	return func(v *View) { v.Space.Automatic.Ended = ago }
}

func TestARequestForADefragmentationIsWithdrawnWhenItsTriggerNoLongerApplies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   bool
		change func(v *View)
	}{
		"it waits":                               {false, func(*View) {}},
		"the window has closed":                  {true, shut},
		"space was freed":                        {true, sized(500, 400)},
		"the file has reached 90 % of the quota": {false, func(v *View) { shut(v); sized(1900, 1000)(v) }},
		"an operator requested it":               {false, func(v *View) { shut(v); v.Asked.Automatic = false }},
		"its operation has begun": {false, func(v *View) {
			shut(v)
			v.Asked.Begun, v.Asked.Seen = true, true
		}},
		"an operator has started a rollout": {true, rolling},
		"the cluster is unreachable":        {false, func(v *View) { shut(v); v.Cluster.Reachable = false }},
	} {
		v := fragmentedView()
		v.Asked = &Asked{Request: Request{Work: WorkDefrag, By: "quorumd", Reason: "due", Automatic: true}}
		c.change(&v)
		d := Decide(v)
		if got := d.Notes.Request.Change == RequestWithdrawn; got != c.want {
			t.Errorf("%s: the request is withdrawn: %t", name, got)
		}
		if c.want && (d.Step.Kind == StepTakeLock || d.Step.Kind == StepBeginCycle) {
			t.Errorf("%s: the agent is about to %s", name, d.Step.Kind)
		}
	}
}

func TestAnOperatorsRequestReplacesTheAgentsOwn(t *testing.T) {
	t.Parallel()
	own := Request{Work: WorkDefrag, By: "quorumd", Automatic: true}
	next, refused := own.Renewed(Request{Work: WorkDefrag, By: "ann", Reason: "now"})
	if refused != nil || next.Automatic || next.Reason != "now" {
		t.Errorf("%+v, %v", next, refused)
	}
}

func TestDifferentQuotasOfLiveVotersAreReported(t *testing.T) {
	t.Parallel()
	const want = "the quota of voter n3 is 1024 MiB, and that of voter n1 is 2048 MiB: the smaller one limits the " +
		"cluster"
	third := func(change func(m *Member)) func(v *View) {
		return func(v *View) { change(&v.Cluster.Members[2]) }
	}
	for name, c := range map[string]struct {
		want   string
		change func(v *View)
	}{
		"equal":                 {"", func(*View) {}},
		"one is smaller":        {want, third(func(m *Member) { m.Database.Quota = 1024 * mib })},
		"its voter is not live": {"", third(func(m *Member) { m.Database.Quota, m.Live = 1, false })},
		"it is unknown":         {"", third(func(m *Member) { m.Database.Quota = 0 })},
		"a learner's":           {"", third(func(m *Member) { m.Database.Quota, m.Learner = 1, true })},
	} {
		v := fragmentedView()
		c.change(&v)
		text := ""
		for _, r := range Decide(v).Reasons {
			if r.Code == QuotasDiffer {
				text = r.Text
			}
		}
		if text != c.want || c.want != "" && !strings.Contains(Remedy(v, QuotasDiffer), "ETCD_QUOTA_BACKEND_BYTES") {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
