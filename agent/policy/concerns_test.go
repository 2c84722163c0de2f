// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"
)

func TestWhatIsUnderWayGoesBeforeADeadVoterAndThatBeforeTheSize(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range concerns() {
		names = append(names, c.name)
	}
	want := []string{
		"a cluster is brought back that had lost its majority",
		"a cluster is made", "the listed hosts make a cluster",
		"this host's operation is in flight", "a leader that is not well gives way",
		"a person has a member removed", "this host is to be taken down", "another host's operation is in flight",
		"etcd has made a cluster of its own here", "etcd of this host's member runs",
		"members may differ", "etcd has no room",
		"what was left over is taken away", "a standby is lost", "this host's own member has lost its data",
		"a voter is dead or sick", "the cluster has its size",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// Of two concerns that both have something to say the earlier one decides.
func TestOfTwoConcernsTheEarlierOneDecides(t *testing.T) {
	t.Parallel()
	says := func(v View, name string) bool {
		i := slices.IndexFunc(concerns(), func(c concern) bool { return c.name == name })
		_, decided := concerns()[i].part(v)
		return decided
	}
	for name, c := range map[string]struct {
		change func(v *View)
		later  string
		step   StepKind
		reason ReasonCode
	}{
		"a dead voter, and a cluster that is too small": {
			func(v *View) { v.Target.Voters = 5 }, "the cluster has its size", StepTakeLock, "",
		},
		"a pause, and a dead voter": {
			func(v *View) { v.Pause = &Pause{By: "ann"} }, "a voter is dead or sick", StepNone, Paused,
		},
		"a host that is to be taken down, and a dead voter": {
			func(v *View) {
				v.Asked = &Asked{Work: WorkReboot, WaitedFor: time.Minute}
				v.Hosts[2].Wants = WorkReboot
			}, "a voter is dead or sick", StepTakeLock, "",
		},
		"members that may differ, and a dead voter": {
			func(v *View) { v.Cluster.Intact = false }, "a voter is dead or sick", StepNone, EtcdCorrupt,
		},
		"no room, and a dead voter": {
			func(v *View) { v.Cluster.Roomy = false }, "a voter is dead or sick", StepNone, EtcdNoSpace,
		},
		"members that may differ, and no room": {
			func(v *View) { v.Cluster.Intact, v.Cluster.Roomy = false, false }, "etcd has no room", StepNone,
			EtcdCorrupt,
		},
		"an operation in flight, and a cluster that is too small": {
			func(v *View) {
				v.Target.Voters = 5
				v.Op = &Op{Kind: KindJoin, Host: "n5", HostName: "n5", Phase: PhaseBegun}
			}, "the cluster has its size", StepNone, VoterNotLive,
		},
	} {
		v := deadView()
		c.change(&v)
		d := Decide(v)
		if !says(v, c.later) || d.Step.Kind != c.step || c.step == StepNone && d.Reasons[0].Code != c.reason {
			t.Errorf("%s: step %q, reasons %v", name, d.Step.Kind, d.Reasons)
		}
	}
}
