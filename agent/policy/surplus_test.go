// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// fourVoters returns the view of voter n4, which was promoted to replace n3. n3 recovered before any host removed it,
// so four members vote.
func fourVoters() View {
	v := promotedExtra()
	v.Lock = Lock{Known: true}
	recoverN3(&v)
	return v
}

func TestSurplusVotersAreReportedIfNoHostRemovesOne(t *testing.T) {
	t.Parallel()
	const even = "4 voters, 3 configured; while the count is even, no voter is taken down"
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"four of three":   {func(*View) {}, even},
		"with repair off": {func(v *View) { v.Limits.UnhealthyGrace = 0 }, even},
		"with repair of unhealthy voters off": {func(v *View) {
			v.Limits.UnhealthyGrace, v.Hosts[2] = 0, unhealthyView().Hosts[2]
		}, even},
		"with repair of unhealthy voters on": {func(v *View) { v.Hosts[2] = unhealthyView().Hosts[2] }, ""},
		"three of one": {
			func(v *View) { without(v, 3); v.Target.Voters = 1 }, "3 voters, 1 configured",
		},
		"as many as configured": {func(v *View) { v.Target.Voters = 5 }, ""},
		"one does not answer":   {unreached, ""},
		"just now":              {func(v *View) { v.Cluster.StableFor = time.Second }, ""},
		"an operation is in flight": {func(v *View) {
			v.Op = &Op{Kind: KindReplace, Host: "n1", HostName: "n1", Replaces: 3, Phase: PhasePromoted}
		}, ""},
		"it is unknown": {func(v *View) { v.Cluster.Reachable = false }, ""},
	} {
		v := fourVoters()
		c.change(&v)
		reported := ""
		d := Decide(v)
		for _, r := range d.Reasons {
			if r.Code == TooManyVoters {
				reported = r.Text
			}
		}
		if reported != c.text {
			t.Errorf("%s: %q, want %q", name, reported, c.text)
		}
	}
	if d := Decide(fourVoters()); d.Reasons[0].Code != TooManyVoters || d.Step.Kind != StepNone {
		t.Errorf("at rest, the surplus is not the first reason: %+v", d)
	}
	other := fourVoters() // after a reason with precedence, TooManyVoters is reported as a caution
	other.Health = Health{State: health.OK}
	other.Unit.NotAtBoot = true
	if d := Decide(other); !slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == TooManyVoters }) {
		t.Errorf("the surplus is not reported: %+v", d.Reasons)
	}
}

// deadOfFour returns the view of voter n1 11 min after n3 lost power. There are four voters, and three are configured.
func deadOfFour() View {
	v := leaderSeesDead()
	v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
	v.Hosts[2] = ready("n4", RoleVoter)
	v.Hosts[2].Sees = []record.Reachability{{MemberID: 3, LostSince: lostOn, For: 11 * time.Minute}}
	v.Self.MemberID = 1
	return v
}

// removingSurplus is deadOfFour while n1 removes n3.
func removingSurplus(phase OpPhase) func() View {
	return func() View {
		v := replacing(deadOfFour, phase)()
		v.Op.Host, v.Op.HostName, v.Op.Target, v.Op.PeerURL = "n1", "n1", "", v.Self.PeerURL
		v.Hosts[0].Answered = true // n1 has checked n3 itself
		return v
	}
}

// back makes n3 answer again.
func back(v *View) {
	without(v, 3)
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts = append(v.Hosts, ready("n3", RoleVoter))
}

func TestAVoterRemovesADeadSurplusVoter(t *testing.T) {
	t.Parallel()
	play(t, deadOfFour, []scene{
		{"no host can replace it, and it is removed", nil, StepTakeLock, ""},
		{"it records the removed member", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginReplace, ""},
		{
			"unhealthy voters are replaced as well",
			func(v *View) { v.Limits.UnhealthyGrace = time.Hour }, StepTakeLock,
			"",
		},
		{"dead voters are not replaced", func(v *View) { v.Limits.DeadGrace = 0 }, StepNone, VoterDead},
		{"the grace period is not over", func(v *View) { v.Limits.DeadGrace = time.Hour }, StepNone, VoterDead},
		{"there is no surplus voter", func(v *View) { v.Target.Voters = 5 }, StepNone, VoterDead},
		{"one voter reaches it", func(v *View) {
			markReached(&v.Hosts[1].Sees[0])
		}, StepNone, VoterNotLive},
		{"this host reaches it", func(v *View) { markReached(&v.Hosts[0].Sees[1]) }, StepNone, VoterNotLive},
		{"another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"another voter's health is unknown", func(v *View) {
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{
			"the daily limit of replacements is reached", func(v *View) { v.Repairs = 2 }, StepNone,
			RepairLimitReached,
		},
		{"the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "lunch"}
		}, StepNone, Paused},
		{"this host has a request", func(v *View) {
			v.Asked = &Asked{Request: Request{Work: WorkRestart, Begun: true}}
		}, StepNone, QuorumAtRisk},
	})
}

func TestADeadSurplusVoterIsRemovedOnlyOnCurrentReports(t *testing.T) {
	t.Parallel()
	scenes := func(first string, step, gone StepKind) []scene {
		return []scene{
			{first, nil, step, ""},
			{"one has not reported", func(v *View) { v.Hosts[1].Answered = false }, StepNone, HealthAwaited},
			{
				"this host has not checked again",
				func(v *View) { v.Hosts[0].Answered = false },
				StepNone,
				HealthAwaited,
			},
			{"another voter's health is unknown", func(v *View) {
				v.Hosts[1].Health = health.Unknown
			}, StepNone, QuorumAtRisk},
			{"another voter is unhealthy", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
			{"it is back", back, gone, ""},
			{"one voter reaches it", func(v *View) { markReached(&v.Hosts[1].Sees[0]) }, gone, ""},
			{"it has not been dead for long enough by now", func(v *View) {
				v.Hosts[1].Sees[0].For = time.Minute
			}, gone, ""},
			{"there is no longer a surplus voter", func(v *View) { v.Target.Voters = 5 }, gone, ""},
			{"the removal lasts too long", func(v *View) {
				v.Hosts[1].Health, v.Op.Elapsed = health.Unknown, time.Hour
			}, gone, ""},
			{"dead voters are no longer replaced", func(v *View) { v.Limits.DeadGrace = 0 }, gone, ""},
			{"this host no longer votes", func(v *View) { without(v, v.Self.MemberID) }, gone, ""},
			{"it is removed", func(v *View) { without(v, 3) }, StepEndOp, ""},
			{"it is removed, and so is this host", func(v *View) {
				without(v, 3)
				without(v, v.Self.MemberID)
			}, StepEndOp, ""},
		}
	}
	play(
		t,
		removingSurplus(PhaseBegun),
		scenes("all have reported, and this host has checked", StepSetPhase, StepEndOp),
	)
	play(t, removingSurplus(PhaseRemoving), scenes("all have reported again", StepRemoveMember, StepRollBack))
	play(t, removingSurplus(PhaseRollback), []scene{
		{"a removal may still take effect", nil, StepNone, Settling},
		{"no removal can take effect any more", func(v *View) { v.Op.WrittenFor = time.Hour }, StepEndOp, ""},
	})
}

func TestTheRemovalOfASurplusVoterIsNoJoin(t *testing.T) {
	t.Parallel()
	v := removingSurplus(PhaseRemoving)()
	without(&v, 3)
	if d := Decide(v); d.Step.Outcome != Removed || d.Notes.Join != JoinUncounted {
		t.Errorf("the operation ends with %s, and counts as %d", d.Step.Outcome, d.Notes.Join)
	}
	begins := Step{Kind: StepBeginReplace, Why: "n3 is dead"}
	if got := begins.Text(); got != "recording the removal of a surplus voter: n3 is dead" {
		t.Errorf("the step that begins it is reported as %q", got)
	}
	v = removingSurplus(PhaseBegun)()
	if d := Decide(v); !d.Notes.Repair {
		t.Error("the removal does not count for the daily limit")
	}
	if got := Title(OperationTitle{Kind: KindReplace, HostName: "n1"}); got != "removal of a surplus voter by n1" {
		t.Errorf("the operation's title is %q", got)
	}
}

func TestADeadSurplusVoterIsReportedAsSurplus(t *testing.T) {
	t.Parallel()
	const dead = "n3 has been dead for 10m, reported by n1, n2, n4; "
	const spent = "2 voters were replaced in the last 24 hours (limit: 2)"
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"dead voters are not replaced": {
			func(v *View) { v.Limits.DeadGrace = 0 }, dead + "no host removes it, because repair.dead is off",
		},
		"the grace period is not over": {
			func(v *View) { v.Limits.DeadGrace = 12 * time.Minute },
			dead + "it will be removed in 2m as a surplus voter",
		},
		"the grace period is over": {func(*View) {}, dead + "it is about to be removed as a surplus voter"},
		"all others only observe": {
			func(v *View) {
				for i := range v.Hosts {
					v.Hosts[i].Manage = false
				}
			},
			dead + "it may be removed after 10m, but: no agent of a live voter is in mode manage",
		},
		"the removal has begun": {
			func(v *View) { *v = removingSurplus(PhaseBegun)() }, dead + "n1 removes it as a surplus voter",
		},
		"the daily limit is reached during the grace period": {
			func(v *View) { v.Repairs, v.Limits.DeadGrace = 2, time.Hour },
			dead + "it may be removed in 50m, but: " + spent,
		},
		"the daily limit is reached": {
			func(v *View) { v.Repairs = 2 }, dead + "it may be removed after 10m, but: " + spent,
		},
	} {
		v := deadOfFour()
		c.change(&v)
		all := DeadVoters(v)
		if len(all) != 1 || all[0].Text(v.Limits.DeadGrace) != c.text {
			t.Errorf("%s: %+v\nwant %s", name, all, c.text)
		}
	}
}

// recoveredOfSix returns the view of n4, which was promoted to replace n3. There are six voters, and five are
// configured: n3 has recovered, and n5 is unhealthy.
func recoveredOfSix() View {
	v := promotedExtra()
	v.Target.Voters = 5
	v.Cluster.Members = append(v.Cluster.Members, voter(5, "n5"), voter(6, "n6"))
	v.Hosts = append(v.Hosts, ready("n5", RoleVoter), ready("n6", RoleVoter))
	v.Hosts[4].Health, v.Hosts[4].UnhealthySince = v.Hosts[2].Health, v.Hosts[2].UnhealthySince
	v.Hosts[4].Defective = true
	v.Cluster.Members[4].Fsyncs = v.Cluster.Members[2].Fsyncs
	recoverN3(&v)
	return v
}

func TestARecoveredVoterStaysWhileAnotherIsUnhealthy(t *testing.T) {
	t.Parallel()
	dead := func(v *View) {
		v.Limits.DeadGrace = 10 * time.Minute
		m := &v.Cluster.Members[4]
		m.Live, m.LiveFor, m.DownFor, m.AgentGoneFor = false, 0, time.Hour, time.Hour
		v.Hosts = slices.Delete(v.Hosts, 4, 5)
		for i := range v.Hosts {
			v.Hosts[i].Sees = []record.Reachability{
				{MemberID: 5, LostSince: lostOn, Link: record.LinkNone, For: time.Hour},
			}
		}
	}
	scenes := func(first string, step, gone StepKind) []scene {
		return []scene{
			{first, nil, gone, ""},
			{"the other one is dead", dead, gone, ""},
			{"it has only just become unhealthy", func(v *View) {
				v.Hosts[4].UnhealthySince.For = time.Minute
			}, StepNone, QuorumAtRisk},
			{"it has only just stopped answering", func(v *View) {
				dead(v)
				v.Cluster.Members[4].AgentGoneFor = time.Second
			}, StepNone, QuorumAtRisk},
			{"all others are healthy: there is a surplus voter", func(v *View) {
				v.Hosts[4].Health, v.Hosts[4].UnhealthySince = health.OK, UnhealthySince{}
			}, step, ""},
			{"both are unhealthy", func(v *View) {
				v.Hosts[2].Health, v.Hosts[2].UnhealthySince = v.Hosts[4].Health, v.Hosts[4].UnhealthySince
				v.Hosts[2].Defective = true
			}, StepNone, CommonCause},
		}
	}
	play(
		t,
		replacing(recoveredOfSix, PhasePromoted),
		scenes("the other one is unhealthy, and is removed", StepSetPhase, StepEndOp),
	)
	play(t, replacing(recoveredOfSix, PhaseRemoving),
		scenes("the other one is unhealthy, and the removal may have been sent", StepRemoveMember, StepRollBack))
	play(t, func() View {
		v := recoveredOfSix()
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		return v
	}, []scene{{"the unhealthy voter is removed after that", nil, StepBeginReplace, ""}})
}
