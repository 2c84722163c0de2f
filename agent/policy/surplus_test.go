// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// fourVote is what voter n4 sees: n3, whose place it has taken, is well again before anybody has removed it.
func fourVote() View {
	v := promotedBeside()
	v.Lock = Lock{Known: true}
	well(&v)
	return v
}

func TestMoreVotersThanAreWantedAreToldWhenNobodyTakesOneOut(t *testing.T) {
	t.Parallel()
	const even = "4 voters, 3 wanted; while the count is even, no voter is taken down"
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"four of three":            {func(*View) {}, even},
		"where nobody is repaired": {func(v *View) { v.Limits.SickGrace = 0 }, even},
		"a sick one stays there": {func(v *View) {
			v.Limits.SickGrace, v.Hosts[2] = 0, sickView().Hosts[2]
		}, even},
		"a sick one goes":     {func(v *View) { v.Hosts[2] = sickView().Hosts[2] }, ""},
		"three of one":        {func(v *View) { without(v, 3); v.Target.Voters = 1 }, "3 voters, 1 wanted"},
		"as many as wanted":   {func(v *View) { v.Target.Voters = 5 }, ""},
		"one does not answer": {unreached, ""},
		"just now":            {func(v *View) { v.Cluster.StableFor = time.Second }, ""},
		"an operation is in flight": {func(v *View) {
			v.Op = &Op{Kind: KindReplace, Host: "n1", HostName: "n1", Replaces: 3, Phase: PhasePromoted}
		}, ""},
		"nobody knows": {func(v *View) { v.Cluster.Reachable = false }, ""},
	} {
		v := fourVote()
		c.change(&v)
		told := ""
		d := Decide(v)
		for _, r := range d.Reasons {
			if r.Code == VotersSurplus {
				told = r.Text
			}
		}
		if told != c.text {
			t.Errorf("%s: %q, want %q", name, told, c.text)
		}
	}
	if d := Decide(fourVote()); d.Reasons[0].Code != VotersSurplus || d.Step.Kind != StepNone {
		t.Errorf("at rest it is not what counts: %+v", d)
	}
	beside := fourVote() // where something else counts more it is told beside
	beside.Health = Health{State: health.OK}
	beside.Unit.NotAtBoot = true
	if d := Decide(beside); !slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == VotersSurplus }) {
		t.Errorf("it is not told: %+v", d.Reasons)
	}
}

// deadOfFour is what voter n1 sees 11 min after n3 has lost its power, of four of which three are wanted.
func deadOfFour() View {
	v := besideDead()
	v.Cluster.Members = append(v.Cluster.Members, voter(4, "n4"))
	v.Hosts[2] = ready("n4", RoleVoter)
	v.Hosts[2].Sees = []Sight{{MemberID: 3, Lost: true, For: 11 * time.Minute}}
	v.Self.MemberID = 1
	return v
}

// removingSurplus is the same while n1 removes it.
func removingSurplus(phase OpPhase) func() View {
	return func() View {
		v := replacing(deadOfFour, phase)()
		v.Op.Host, v.Op.HostName, v.Op.Target, v.Op.PeerURL = "n1", "n1", "", v.Self.PeerURL
		v.Hosts[0].Answered = true // it has looked itself
		return v
	}
}

// back lets n3 answer again.
func back(v *View) {
	without(v, 3)
	v.Cluster.Members = append(v.Cluster.Members, voter(3, "n3"))
	v.Hosts = append(v.Hosts, ready("n3", RoleVoter))
}

func TestAVoterHasADeadOneRemovedThatIsOneTooMany(t *testing.T) {
	t.Parallel()
	play(t, deadOfFour, []scene{
		{"nobody could take its place, and nobody needs to", nil, StepTakeLock, ""},
		{"it is recorded whom it has removed", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginReplace, ""},
		{"where sick ones go, too", func(v *View) { v.Limits.SickGrace = time.Hour }, StepTakeLock, ""},
		{"not where dead ones stay", func(v *View) { v.Limits.DeadGrace = 0 }, StepNone, VoterDead},
		{"nor before the grace is over", func(v *View) { v.Limits.DeadGrace = time.Hour }, StepNone, VoterDead},
		{"nor where none is too many", func(v *View) { v.Target.Voters = 5 }, StepNone, VoterDead},
		{"nor when one voter reaches it", func(v *View) {
			v.Hosts[1].Sees[0].Lost = false
		}, StepNone, VoterNotLive},
		{"nor when this host does", func(v *View) { v.Hosts[0].Sees[1].Lost = false }, StepNone, VoterNotLive},
		{"nor when another voter is sick", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
		{"nor when another is not known to be well", func(v *View) {
			v.Hosts[1].Health = health.Unknown
		}, StepNone, QuorumAtRisk},
		{"nor when as many were replaced today as may be", func(v *View) { v.Repairs = 2 }, StepNone, RepairsSpent},
		{"nor while the cluster is paused", func(v *View) {
			v.Pause = &Pause{By: "root", Reason: "lunch"}
		}, StepNone, Paused},
		{"nor while this host is to be taken down", func(v *View) {
			v.Asked = &Asked{Work: WorkRestart}
		}, StepNone, QuorumAtRisk},
	})
}

func TestADeadVoterTooManyIsRemovedByTheLastLookAlone(t *testing.T) {
	t.Parallel()
	scenes := func(first string, step, gone StepKind) []scene {
		return []scene{
			{first, nil, step, ""},
			{"one has not told", func(v *View) { v.Hosts[1].Answered = false }, StepNone, VerdictAwaited},
			{"this host has not looked anew", func(v *View) { v.Hosts[0].Answered = false }, StepNone, VerdictAwaited},
			{"another one is not known to be well", func(v *View) {
				v.Hosts[1].Health = health.Unknown
			}, StepNone, QuorumAtRisk},
			{"another one is sick", func(v *View) { v.Hosts[1].Health = health.Slow }, StepNone, CommonCause},
			{"it is back", back, gone, ""},
			{"one voter reaches it", func(v *View) { v.Hosts[1].Sees[0].Lost = false }, gone, ""},
			{"it has been dead for too short a time by now", func(v *View) {
				v.Hosts[1].Sees[0].For = time.Minute
			}, gone, ""},
			{"none is too many any more", func(v *View) { v.Target.Voters = 5 }, gone, ""},
			{"not for ever", func(v *View) {
				v.Hosts[1].Health, v.Op.Elapsed = health.Unknown, time.Hour
			}, gone, ""},
			{"dead ones stay by now", func(v *View) { v.Limits.DeadGrace = 0 }, gone, ""},
			{"this host votes no more itself", func(v *View) { without(v, v.Self.MemberID) }, gone, ""},
			{"it is gone", func(v *View) { without(v, 3) }, StepEndOp, ""},
			{"it is gone, and so is this host", func(v *View) {
				without(v, 3)
				without(v, v.Self.MemberID)
			}, StepEndOp, ""},
		}
	}
	play(t, removingSurplus(PhaseBegun), scenes("all have told, and this host has looked", StepSetPhase, StepEndOp))
	play(t, removingSurplus(PhaseRemoving), scenes("all have told again", StepRemoveMember, StepRollBack))
	play(t, removingSurplus(PhaseRollback), []scene{
		{"what etcd was told lands within the lock's time or not at all", nil, StepNone, Settling},
		{"then it ends", func(v *View) { v.Op.WrittenFor = time.Hour }, StepEndOp, ""},
	})
}

func TestTheRemovalOfAVoterTooManyIsNoJoin(t *testing.T) {
	t.Parallel()
	v := removingSurplus(PhaseRemoving)()
	without(&v, 3)
	if d := Decide(v); d.Step.Outcome != Removed || d.Notes.Join != JoinUncounted {
		t.Errorf("it ends with %s, and counts as %d", d.Step.Outcome, d.Notes.Join)
	}
	begins := Step{Kind: StepBeginReplace, Why: "n3 is dead"}
	if got := begins.Text(); got != "recording the removal of a surplus voter: n3 is dead" {
		t.Errorf("its beginning is told as %q", got)
	}
	v = removingSurplus(PhaseBegun)()
	if d := Decide(v); !d.Notes.Repair {
		t.Error("it does not count among the repairs of the day")
	}
	if got := Title(OperationTitle{Kind: KindReplace, HostName: "n1"}); got != "removal of a voter too many by n1" {
		t.Errorf("it is called %q", got)
	}
}

func TestADeadVoterThatIsOneTooManyIsToldAsSuch(t *testing.T) {
	t.Parallel()
	const dead = "n3 has been dead for 10m, reported by n1, n2, n4; "
	const spent = "2 voters were replaced in the last 24 hours, the limit is 2"
	for name, c := range map[string]struct {
		change func(v *View)
		text   string
	}{
		"dead ones stay": {
			func(v *View) { v.Limits.DeadGrace = 0 }, dead + "no host removes it, because repair.dead is off",
		},
		"the grace is not over": {
			func(v *View) { v.Limits.DeadGrace = 12 * time.Minute },
			dead + "it is removed in 2m: surplus voter",
		},
		"it is": {func(*View) {}, dead + "it is about to be removed: surplus voter"},
		"all others observe": {
			func(v *View) {
				for i := range v.Hosts {
					v.Hosts[i].Manage = false
				}
			},
			dead + "it may be removed after 10m, but: no agent of a live voter is in mode manage",
		},
		"it is begun": {
			func(v *View) { *v = removingSurplus(PhaseBegun)() }, dead + "n1 removes it: surplus voter",
		},
		"not so early": {
			func(v *View) { v.Repairs, v.Limits.DeadGrace = 2, time.Hour },
			dead + "it may be removed in 50m, but: " + spent,
		},
		"enough went": {func(v *View) { v.Repairs = 2 }, dead + "it may be removed after 10m, but: " + spent},
	} {
		v := deadOfFour()
		c.change(&v)
		all := DeadVoters(v)
		if len(all) != 1 || all[0].Text(v.Limits.DeadGrace) != c.text {
			t.Errorf("%s: %+v\nwant %s", name, all, c.text)
		}
	}
}

// wellOfSix is what n4, which has come to vote in the place of n3, sees of six of which five are wanted: n3 is well
// again, and n5 is sick.
func wellOfSix() View {
	v := promotedBeside()
	v.Target.Voters = 5
	v.Cluster.Members = append(v.Cluster.Members, voter(5, "n5"), voter(6, "n6"))
	v.Hosts = append(v.Hosts, ready("n5", RoleVoter), ready("n6", RoleVoter))
	v.Hosts[4].Health, v.Hosts[4].Ails = v.Hosts[2].Health, v.Hosts[2].Ails
	v.Cluster.Members[4].Fsyncs = v.Cluster.Members[2].Fsyncs
	well(&v)
	return v
}

func TestAVoterThatIsWellAgainStaysWhileAnotherOneIsNot(t *testing.T) {
	t.Parallel()
	dead := func(v *View) {
		v.Limits.DeadGrace = 10 * time.Minute
		m := &v.Cluster.Members[4]
		m.Live, m.LiveFor, m.DownFor, m.AgentGoneFor = false, 0, time.Hour, time.Hour
		v.Hosts = slices.Delete(v.Hosts, 4, 5)
		for i := range v.Hosts {
			v.Hosts[i].Sees = []Sight{{MemberID: 5, Lost: true, ConnectedKnown: true, For: time.Hour}}
		}
	}
	scenes := func(first string, step, gone StepKind) []scene {
		return []scene{
			{first, nil, gone, ""},
			{"or dead", dead, gone, ""},
			{"it has only just turned sick", func(v *View) {
				v.Hosts[4].Ails.For = time.Minute
			}, StepNone, QuorumAtRisk},
			{"it has only just fallen silent", func(v *View) {
				dead(v)
				v.Cluster.Members[4].AgentGoneFor = time.Second
			}, StepNone, QuorumAtRisk},
			{"all others are well: one is too many", func(v *View) {
				v.Hosts[4].Health, v.Hosts[4].Ails = health.OK, UnhealthySince{}
			}, step, ""},
			{"both are sick", func(v *View) {
				v.Hosts[2].Health, v.Hosts[2].Ails = v.Hosts[4].Health, v.Hosts[4].Ails
			}, StepNone, CommonCause},
		}
	}
	play(t, replacing(wellOfSix, PhasePromoted), scenes("the other one is sick, and goes", StepSetPhase, StepEndOp))
	play(t, replacing(wellOfSix, PhaseRemoving), scenes("so it is after etcd may have been told", StepRemoveMember,
		StepRollBack))
	play(t, func() View {
		v := wellOfSix()
		v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		return v
	}, []scene{{"the sick one is removed after that", nil, StepBeginReplace, ""}})
}
