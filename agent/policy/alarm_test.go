// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// differ makes etcd raise the CORRUPT alarm, and full the NOSPACE alarm.
func differ(v *View) { v.Cluster.Intact, v.Cluster.Alarms = false, "n2 raised the alarm CORRUPT" }

func full(v *View) { v.Cluster.Roomy, v.Cluster.Alarms = false, "n1 raised the alarm NOSPACE" }

func TestNothingBeginsThatAnEtcdAlarmForbids(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"a host joins", nil, StepTakeLock, ""},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
		{"etcd has no space", full, StepNone, EtcdNoSpace},
		{"both alarms are raised", func(v *View) { full(v); differ(v) }, StepNone, EtcdCorrupt},
		{
			"etcd has no space, and the cluster is paused",
			func(v *View) { full(v); v.Pause = &Pause{By: "ann"} }, StepNone, Paused,
		},
		{"etcd has no space, and this agent holds the lock", func(v *View) {
			full(v)
			v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: v.Limits.LockTTL, Token: 7}
		}, StepReleaseLock, ""},
		{"no voter answers", func(v *View) {
			v.Cluster = Cluster{Error: "refused"}
		}, StepNone, ClusterUnreachable},
	})
	play(t, deadView, []scene{
		{"a dead voter is replaced", nil, StepTakeLock, ""},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
		{"etcd has no space", full, StepNone, EtcdNoSpace},
	})
	play(t, askedView, []scene{
		{"a voter is taken down", nil, StepTakeLock, ""},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
		{"etcd has no space: a larger quota needs a restart", full, StepTakeLock, ""},
	})
}

// divide makes the comparison of the voters' data find no majority with the same data. corruptLeader makes it find that
// the leader's data differs.
func divide(v *View) { v.Cluster.Divided = true }

func corruptLeader(v *View) {
	for i, m := range v.Cluster.Members {
		if m.Leader {
			v.Cluster.Members[i].Corrupt = Corruption{Times: 1, For: time.Minute, Revision: 9}
		}
	}
}

func TestDifferentDataStopsOperationsWithoutAnAlarm(t *testing.T) {
	t.Parallel()
	play(t, spareView, []scene{
		{"a host joins", nil, StepTakeLock, ""},
		{"no majority has the same data", divide, StepNone, DataDiffers},
		{"the leader's data differs", corruptLeader, StepNone, DataDiffers},
		{"a voter's host reports it", func(v *View) {
			i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Role == RoleVoter })
			v.Hosts[i].DataDiffers = true
		}, StepNone, DataDiffers},
	})
	play(t, deadView, []scene{
		{"a dead voter is replaced", nil, StepTakeLock, ""},
		{"no majority has the same data", divide, StepNone, DataDiffers},
	})
	play(t, askedView, []scene{
		{"a voter is taken down", nil, StepTakeLock, ""},
		{"no majority has the same data", divide, StepNone, DataDiffers},
	})
	play(t, removalView, []scene{
		{"an operator removes a member", nil, StepTakeLock, ""},
		{"no majority has the same data: the operator decides", divide, StepTakeLock, ""},
		{"the leader's data differs", corruptLeader, StepTakeLock, ""},
		{"etcd has raised CORRUPT as well", func(v *View) { divide(v); differ(v) }, StepNone, EtcdCorrupt},
	})
}

func TestAHostReportsOnlyItsOwnComparison(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		want   bool
	}{
		"nothing differs":               {func(*View) {}, false},
		"no majority has the same data": {divide, true},
		"the leader's data differs":     {corruptLeader, true},
		"another host reports it": {func(v *View) {
			for i := range v.Hosts {
				v.Hosts[i].DataDiffers = true
			}
		}, false},
		"etcd has raised CORRUPT": {differ, false},
	} {
		v := spareView()
		c.change(&v)
		if got := v.ReportsDifferentData(); got != c.want {
			t.Errorf("%s: reported %v", name, got)
		}
	}
}

func TestAJoinInProgressWaitsUntilAnAlarmIsCleared(t *testing.T) {
	t.Parallel()
	play(t, joinView, []scene{
		{"the learner is promoted", nil, StepPromote, ""},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
		{"etcd has no space", full, StepNone, EtcdNoSpace},
	})
}

func TestAnIdleHostReportsAnAlarmWithItsRemedy(t *testing.T) {
	t.Parallel()
	for code, change := range map[ReasonCode]func(*View){EtcdCorrupt: differ, EtcdNoSpace: full} {
		v := deadView()
		v.Limits.DeadGrace = 0
		change(&v)
		d := Decide(v)
		i := slices.IndexFunc(d.Reasons, func(r Reason) bool { return r.Code == code })
		if i != 0 || !strings.HasPrefix(d.Reasons[0].Text, v.Cluster.Alarms+": ") ||
			!strings.Contains(d.Reasons[0].Text, "until") || code.Info().Remedy == "" {
			t.Errorf("%s: %v", code, d.Reasons)
		}
	}
}

// An operation in flight takes precedence over an alarm: the agent retries its writes in every round, and etcd refuses
// them.
func TestAStepRefusedForLackOfSpaceNamesTheAlarmsRemedy(t *testing.T) {
	t.Parallel()
	replaces := func() View {
		v := joinView()
		v.Limits.DeadGrace = time.Minute
		v.Op.Kind, v.Op.Replaces, v.Op.Elapsed = KindReplace, 2, v.Limits.LearnerMax+time.Minute
		return v
	}
	for name, reported := range map[string]bool{"the members report it": true, "they have not reported it yet": false} {
		v := replaces()
		v.Failed = FailedStep{Kind: StepRollBack, Text: "cannot write the record: its database is full", Full: true}
		want := v.Failed.Text
		if reported {
			full(&v)
			want = v.Cluster.Alarms + ": etcd rejects writes"
		}
		d := Decide(v)
		if d.Step.Kind != StepRollBack || len(d.Reasons) != 2 || d.Reasons[0].Code != EtcdNoSpace ||
			!strings.HasPrefix(d.Reasons[0].Text, want) || d.Reasons[1] != (Reason{StepFailed, v.Failed.Text}) {
			t.Errorf("%s: the step is %s, for %v", name, d.Step, d.Reasons)
		}
	}
	v := replaces()
	full(&v)
	v.Failed = FailedStep{Kind: StepRollBack, Text: "no answer in time"}
	if d := Decide(v); len(d.Reasons) != 1 || d.Reasons[0].Code != StepFailed {
		t.Errorf("a different failure is reported as %v", d.Reasons)
	}
}
