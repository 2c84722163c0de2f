// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

// fullView returns the view of n1, one of three voters. Its agent may free space after an alarm. Every database is at
// its quota, and half of it is free.
func fullView() View {
	v := voterView()
	v.Lock, v.Op, v.HostsFresh = Lock{Known: true}, nil, true
	full(&v)
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		m.Learner, m.ThinksLearner = false, false
		m.Database, m.Errors = Database{Size: 100 << 20, InUse: 50 << 20, Quota: 100 << 20}, true
	}
	v.Space = Space{
		Remediate: true, Permits: MaxPermits, PermitsFor: time.Hour, Compacted: Never, Keep: 700,
	}
	return v
}

// permitted makes this agent the holder of a permit that it has just claimed.
func permitted(v *View) {
	v.Space.Permits, v.Space.PermitsFor, v.Space.Mine = MaxPermits-1, time.Second, time.Minute
}

// live makes the live data fill 90 % of the quotas.
func live(v *View) {
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Database.InUse = 90 << 20
	}
}

// holds makes this agent the holder of the lock, for its own maintenance.
func holds(v *View) {
	v.Lock = Lock{Known: true, Held: true, Mine: true, ValidFor: v.Limits.LockTTL, Holder: "n1", Token: 7}
	v.Op = &Op{Kind: KindCycle, Host: "n1", HostName: "n1", Phase: PhaseBegun, Token: 7}
}

func roomyAgain(v *View) {
	for i := range v.Cluster.Members {
		v.Cluster.Members[i].Database.Size = 50 << 20
	}
}

func TestOneAgentClaimsThePermitToFreeSpace(t *testing.T) {
	t.Parallel()
	play(t, fullView, []scene{
		{"an agent claims the first permit", nil, StepClaimPermit, ""},
		{
			"the configuration leaves it to an operator",
			func(v *View) { v.Space.Remediate = false }, StepNone, EtcdNoSpace,
		},
		{"the agent only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, EtcdNoSpace},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "ann"} }, StepNone, Paused},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
		{"another agent holds the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Holder: "n2", Token: 9}
		}, StepNone, EtcdNoSpace},
		{"another agent may have a permit", func(v *View) {
			v.Space.Permits, v.Space.PermitsFor = 2, PermitTaken-time.Second
		}, StepNone, EtcdNoSpace},
		{"the next permit can be claimed later", func(v *View) {
			v.Space.Permits, v.Space.PermitsFor = 2, PermitTaken
		}, StepClaimPermit, ""},
		{"no permit is left", func(v *View) { v.Space.Permits = 0 }, StepNone, EtcdNoSpace},
		{"the disk hangs", func(v *View) { v.Health.Hangs = true }, StepNone, EtcdNoSpace},
		{"the agent could not free space", func(v *View) {
			v.Cluster.Members[2].Database.Quota = 0
		}, StepNone, EtcdNoSpace},
		{"a lock without an operation is released first", func(v *View) {
			holds(v)
			v.Op = nil
		}, StepReleaseLock, ""},
	})
}

func TestAnAgentWithThePermitFreesSpaceMemberByMember(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := fullView()
		permitted(&v)
		return v
	}, []scene{
		{"a follower is defragmented first", nil, StepDefragmentOnline, ""},
		{"a defragmentation is in progress", func(v *View) { v.Space.Defragmenting = 2 }, StepNone, FreeingSpace},
		{"another agent may have begun a defragmentation", func(v *View) {
			v.Cluster.Members[2].Live, v.Cluster.Members[2].SilentFor = false, PermitTaken-time.Second
		}, StepNone, EtcdNoSpace},
		{"a member has been down for a long time", func(v *View) {
			v.Cluster.Members[2].Live, v.Cluster.Members[2].SilentFor = false, PermitTaken
		}, StepDefragmentOnline, ""},
		{"the leader transfers its leadership first", func(v *View) {
			roomyAgain(v)
			v.Cluster.Members[0].Database.Size = 100 << 20
		}, StepLeadElsewhere, ""},
		{"the leader is next, and no other voter may lead", func(v *View) {
			roomyAgain(v)
			v.Cluster.Members[0].Database.Size = 100 << 20
			v.Hosts = v.Hosts[:1]
		}, StepDefragmentOnline, ""},
		{"a member has a smaller quota", func(v *View) {
			live(v)
			v.Cluster.Members[0].Database.Quota, v.Cluster.Members[2].Database.Quota = 200<<20, 200<<20
		}, StepCompact, ""},
		{"a failed defragmentation is not repeated", func(v *View) {
			v.Space.Attempts = []DefragAttempt{{MemberID: 2, Failed: "no space left on device"}}
		}, StepNone, StepFailed},
		{"a defragmentation without effect is not repeated", func(v *View) {
			v.Space.Attempts = []DefragAttempt{{MemberID: 2}}
		}, StepNone, EtcdNoSpace},
		{"a member without a quota is never too large", func(v *View) {
			roomyAgain(v)
			v.Cluster.Members[2].Database.Quota = -1
		}, StepDisarmNoSpace, ""},
		{"a learner's database does not show what is in use", func(v *View) {
			live(v)
			m := &v.Cluster.Members[2]
			m.Learner, m.ThinksLearner, m.Database.Size, m.Database.InUse = true, true, 1<<20, 1<<20
		}, StepCompact, ""},
		{"this host's own etcd is started first", func(v *View) {
			v.Unit.State, v.Unit.SinceStart = UnitFailed, Never
			v.Cluster.Members[0].Live, v.Cluster.Members[0].Leader = false, false
			v.Cluster.Members[1].Live, v.Cluster.Members[1].SilentFor = false, time.Second
		}, StepStartUnit, ""},
		{"another agent that took the lock is not disturbed", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Holder: "n2", Token: 9}
		}, StepNone, EtcdNoSpace},
		{"every database is small enough, and the alarm is disarmed", roomyAgain, StepDisarmNoSpace, ""},
		{"live data needs a compaction", live, StepCompact, ""},
		{"the agent has not run for space.retain, whose history a compaction keeps", func(v *View) {
			live(v)
			v.Space.Keep = 0
		}, StepNone, FreeingSpace},
		{"a compaction takes effect after a while", func(v *View) {
			live(v)
			v.Space.Compacted = time.Second
		}, StepNone, FreeingSpace},
		{"a defragmentation shows the effect of a compaction", func(v *View) {
			live(v)
			v.Space.Compacted, v.Space.Kept = compactSettle, v.Space.Keep
		}, StepDefragmentOnline, ""},
		{"a smaller database shows that the others have free space", func(v *View) {
			live(v)
			v.Cluster.Members[1].Database = Database{Size: 20 << 20, InUse: 20 << 20, Quota: 100 << 20}
			v.Space.Compacted, v.Space.Kept = compactSettle, v.Space.Keep
			v.Space.Attempts = []DefragAttempt{{MemberID: 2}}
		}, StepDefragmentOnline, ""},
		{"the compaction did not help, and an operator has to decide", func(v *View) {
			live(v)
			v.Space.Compacted, v.Space.Kept = compactSettle, v.Space.Keep
			v.Space.Attempts = []DefragAttempt{{MemberID: 2}}
		}, StepNone, EtcdNoSpace},
		{"the compaction did not help, and more history is old enough now", func(v *View) {
			live(v)
			v.Space.Compacted, v.Space.Kept = compactSettle, v.Space.Keep-1
			v.Space.Attempts = []DefragAttempt{{MemberID: 2}}
		}, StepCompact, ""},
		{"etcd 3.5 does not report its quota", func(v *View) {
			v.Cluster.Members[2].Database.Quota = 0
		}, StepNone, EtcdNoSpace},
		{"a voter does not answer", func(v *View) {
			roomyAgain(v)
			v.Cluster.Members[2].Live, v.Cluster.Members[2].Database = false, Database{}
			v.Cluster.Members[2].SilentFor = PermitTaken
		}, StepDisarmNoSpace, ""},
		{"the members' data may differ", differ, StepNone, EtcdCorrupt},
	})
}

func TestTheHolderOfTheLockFreesSpaceBeforeItsOperationContinues(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := fullView()
		holds(&v)
		v.Asked = &Asked{Request: Request{Work: WorkMaintenance, Begun: true}}
		return v
	}, []scene{
		{"it needs no permit", func(v *View) { v.Space.Permits = 0 }, StepDefragmentOnline, ""},
		{"its own etcd is stopped", func(v *View) {
			v.Asked.Stopped, v.Unit.State = true, UnitInactive
			v.Cluster.Members[0].Live, v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, false, true
			v.Op.Phase = PhaseDown
		}, StepDefragmentOnline, ""},
	})
}

func TestPermitsAreWrittenBeforeTheyAreNeeded(t *testing.T) {
	t.Parallel()
	play(t, func() View {
		v := fullView()
		v.Cluster.Roomy, v.Cluster.Alarms = true, ""
		v.Space.Permits, v.Space.RoomyFor = 0, time.Hour
		return v
	}, []scene{
		{"all of them are missing", nil, StepWritePermits, ""},
		{"one is missing", func(v *View) { v.Space.Permits = MaxPermits - 1 }, StepWritePermits, ""},
		{"none is missing", func(v *View) { v.Space.Permits = MaxPermits }, StepNone, Idle},
		{"an agent may not have observed that the alarm is over", func(v *View) {
			v.Space.RoomyFor = PermitSettle - time.Second
		}, StepNone, Idle},
		{"etcd has denied the write", func(v *View) {
			v.Failed = FailedStep{Kind: StepWritePermits, Text: "permission denied", Denied: true}
		}, StepNone, Idle},
		{"the last write has failed", func(v *View) {
			v.Failed = FailedStep{Kind: StepWritePermits, Text: "no answer in time"}
		}, StepWritePermits, ""},
	})
}

func TestAnAgentThatMayNotFreeSpaceReportsWhy(t *testing.T) {
	t.Parallel()
	v := fullView()
	v.Lock = Lock{Known: true, Held: true, Holder: "n2", Token: 9}
	d := Decide(v)
	last := d.Reasons[len(d.Reasons)-1]
	if last.Code != EtcdNoSpace || !strings.Contains(last.Text, "only the holder of the lock may free space: n2") {
		t.Errorf("%v", d.Reasons)
	}
}
