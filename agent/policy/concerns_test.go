// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"
)

func TestAnOperationPrecedesADeadVoterAndThatPrecedesTheClusterSize(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range concerns() {
		names = append(names, c.name)
	}
	want := []string{
		"recovery from quorum loss",
		"bootstrap on request", "automatic bootstrap",
		"NOSPACE alarm that this agent may end",
		"this host's operation", "leadership transfer from an unhealthy leader",
		"requested member removal", "surplus voter of a smaller cluster",
		"etcd's downgrade job during a rollout", "this host's request",
		"another host's operation",
		"leadership transfer on request",
		"single-member cluster made by default", "etcd of this host's member",
		"CORRUPT alarm", "NOSPACE alarm", "permits to free space",
		"leftover learners", "lost standby", "this host's member without data",
		"replacement of a dead or unhealthy voter", "join",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

func TestTheEarlierOfTwoConcernsDecides(t *testing.T) {
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
			func(v *View) { v.Target.Voters = 5 }, "join", StepTakeLock, "",
		},
		"a pause, and a dead voter": {
			func(v *View) { v.Pause = &Pause{By: "ann"} }, "replacement of a dead or unhealthy voter", StepNone, Paused,
		},
		"a request, and a dead voter": {
			func(v *View) {
				v.Asked = &Asked{Request: Request{Work: WorkReboot, Begun: true}, WaitedFor: time.Minute}
				v.Hosts[2].Wants = WorkReboot
			}, "replacement of a dead or unhealthy voter", StepTakeLock, "",
		},
		"a CORRUPT alarm, and a dead voter": {
			func(v *View) { v.Cluster.Intact = false }, "replacement of a dead or unhealthy voter", StepNone,
			EtcdCorrupt,
		},
		"a NOSPACE alarm, and a dead voter": {
			func(v *View) { v.Cluster.Roomy = false }, "replacement of a dead or unhealthy voter", StepNone,
			EtcdNoSpace,
		},
		"a CORRUPT and a NOSPACE alarm": {
			func(v *View) { v.Cluster.Intact, v.Cluster.Roomy = false, false }, "NOSPACE alarm", StepNone,
			EtcdCorrupt,
		},
		"an operation in flight, and a cluster that is too small": {
			func(v *View) {
				v.Target.Voters = 5
				v.Op = &Op{Kind: KindJoin, Host: "n5", HostName: "n5", Phase: PhaseBegun}
			}, "join", StepNone, VoterNotLive,
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
