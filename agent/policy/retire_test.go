// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

// retiredN1 returns the view of n3, a spare, in a cluster of two voters whose size is two less than it should be: n1 is
// retired.
func retiredView(id string) View {
	v := resized()
	v.Cluster.Members, v.Hosts = v.Cluster.Members[:3], v.Hosts[:3]
	v.Hosts = append(v.Hosts, ready("n4", RoleSpare))
	v.Target.Configured = 3
	v.Retired = []Retired{{Host: "n1", Name: "n1", PeerURL: peerPrefix + "n1", By: "root", Reason: "old"}}
	v.Self.ID, v.Self.Name, v.Self.PeerURL = id, id, peerPrefix+id
	v.Self.MemberID, v.Data.MemberID = 0, 0
	for _, m := range v.Cluster.Members {
		if m.Name == id {
			v.Self.MemberID, v.Data.MemberID = m.ID, m.ID
		}
	}
	if v.Self.MemberID == 0 {
		v.Unit, v.Data = spareView().Unit, spareView().Data
	}
	v.PlaceFreeFor = time.Hour
	return v
}

// replaced adds n4 as a voter.
func withReplacement(v *View) {
	m := voter(4, "n4")
	m.Leader = false
	v.Cluster.Members = append(v.Cluster.Members, m)
	v.Hosts[3].Role = RoleVoter
}

func TestASpareJoinsBeforeARetiredHostsVoterLeaves(t *testing.T) {
	t.Parallel()
	play(t, func() View { return retiredView("n4") }, []scene{
		{"the spare joins although there are enough voters", nil, StepTakeLock, ""},
		{"not if nothing is retired", func(v *View) { v.Retired = nil }, StepNone, TargetMet},
		{"not if it is retired itself", func(v *View) { v.Retired[0].Host = "n4" }, StepNone, HostRetired},
	})
	play(t, func() View { return retiredView("n1") }, []scene{
		{"the retired host's voter stays until then", nil, StepNone, HostRetired},
		{"and then leaves", withReplacement, StepTakeLock, ""},
		{"not while another voter is down", func(v *View) {
			withReplacement(v)
			v.Cluster.Members[1].Live = false
		}, StepNone, VoterNotLive},
	})
	play(t, func() View { return retiredView("n2") }, []scene{
		{"no other voter leaves in its place", func(v *View) {
			withReplacement(v)
			v.Target.ResizedFor = time.Hour
		}, StepNone, TooManyVoters},
		{"unless there are too many even without it", func(v *View) {
			withReplacement(v)
			v.Target.Voters, v.Target.ResizedFor = 1, 100*time.Hour
			v.Target.WithoutSnapshot, v.IdleFor = true, 100*time.Hour
		}, StepTakeLock, ""},
	})
}

func TestARetiredStandbyLeavesAtOnce(t *testing.T) {
	t.Parallel()
	standby := func() View {
		v := retiredView("n4")
		withReplacement(&v)
		v.Cluster.Members[3].Learner, v.Cluster.Members[3].Standby, v.Hosts[3].Role = true, true, RoleStandby
		v.Retired[0] = Retired{Host: "n4", Name: "n4", PeerURL: peerPrefix + "n4", By: "root", Reason: "old"}
		v.Self.MemberID, v.Self.StandbyID, v.Data = 4, 4, resized().Data
		v.Data.MemberID, v.Unit.State = 4, UnitActive
		v.Target.Standbys = 1
		return v
	}
	play(t, standby, []scene{
		{"it takes the lock", nil, StepTakeLock, ""},
		{"and begins", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
		}, StepBeginLeave, ""},
		{"then it removes its learner", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: time.Minute, Token: 7}
			v.Op = &Op{
				Kind: KindLeave, Host: "n4", HostName: "n4", Phase: PhaseRemoving, Token: 7, MemberID: 4, SameBoot: true,
				WrittenFor: time.Minute,
			}
			for i := range v.Hosts {
				v.Hosts[i].Answered = true
			}
		}, StepRemoveMember, ""},
		{"it stays if the retirement is undone", func(v *View) { v.Retired = nil }, StepNone, Idle},
	})
}

func TestARetirementIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, host string
		change     func(v *View)
		want       string // part of the text; empty if accepted
	}{
		{"a voter with a spare", "n1", nil, ""},
		{"a voter without one", "n1", func(v *View) { v.Hosts = v.Hosts[:3] }, "no host is ready to replace it"},
		{"a second one for the same spare", "n2", func(v *View) {
			v.Retired = []Retired{{Host: "n1", PeerURL: peerPrefix + "n1"}}
		}, "no host is ready to replace it"},
		{"the only voter", "n1", func(v *View) {
			v.Cluster.Members, v.Hosts, v.Target.Voters = v.Cluster.Members[:1], v.Hosts[:1], 1
		}, "no host is ready to replace it"},
		{"a spare", "n4", nil, ""},
		{"an unknown host", "n9", nil, "no host with that name"},
		{"a host in an operation", "n2", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown}
		}, "is in an operation"},
		{"a host that only observes", "n2", func(v *View) { v.Hosts[1].Manage = false }, "only observes"},
		{"during a pause", "n1", func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} }, "paused"},
	} {
		v := retiredView("n2")
		v.Retired = nil
		if c.change != nil {
			c.change(&v)
		}
		switch r := AgainstRetire(v, c.host); {
		case r == nil && c.want != "":
			t.Errorf("%s is accepted", c.name)
		case r != nil && (c.want == "" || !strings.Contains(r.Text, c.want) || r.Hint == ""):
			t.Errorf("%s: %+v, want %q and a remedy", c.name, *r, c.want)
		}
	}
}

func TestThePlanOfARetirementNamesTheReplacement(t *testing.T) {
	t.Parallel()
	v := retiredView("n2")
	v.Retired = nil
	steps := RetirePlan(v, "n1")
	if len(steps) != 3 || !strings.HasPrefix(steps[0].Text, "n4 joins") || steps[0].Voters != 4 ||
		!strings.Contains(steps[1].Text, "leadership is transferred from n1 to n2") || steps[1].Voters != 3 ||
		!steps[1].Final || steps[0].Final || !strings.Contains(steps[2].Text, "can be switched off") {
		t.Errorf("%+v", steps)
	}
	if steps = RetirePlan(v, "n4"); len(steps) != 1 || steps[0].Final {
		t.Errorf("%+v", steps)
	}
}
