// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// slowLeader returns the view of n1, the leader of three voters. The disk of n1 is slow; the other hosts are healthy.
func slowLeader() View {
	v := restingVoter()
	v.Hosts[2].Role = RoleVoter
	v.Health = Health{State: health.Slow, Qualified: true, Text: "99 of 100 writes took up to 200 ms"}
	v.Hosts[0].Health = health.Slow
	v.Hosts[1].P99, v.Hosts[2].P99 = 3*time.Millisecond, 2*time.Millisecond
	v.LeadershipTransfers = LeadershipTransfers{LeadsFor: time.Hour, UnfitFor: time.Hour, LastFor: time.Hour}
	v.Health.SlowWrites, v.Health.Writes, v.Health.Urgent = true, 9*time.Millisecond, true
	v.Hosts[1].Writes, v.Hosts[2].Writes = Writes{Mean: 6 * time.Millisecond}, Writes{Mean: 6 * time.Millisecond}
	return v
}

func TestASlowLeaderTransfersLeadershipOnlyToAVoterWith1point5TimesFasterWrites(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	both := func(w Writes) func(v *View) {
		return func(v *View) { v.Hosts[1].Writes, v.Hosts[2].Writes = w, w }
	}
	hung := func(state health.State) func(v *View) {
		return func(v *View) {
			both(Writes{})(v)
			v.Health.State, v.Health.SlowWrites, v.Health.Writes = state, false, 0
		}
	}
	for _, state := range []health.State{health.Warm, health.Slow} {
		none := Idle // a WARM leader only reports a caution
		if state == health.Slow {
			none = LeaderSlow
		}
		base := func() View {
			v := slowLeader()
			v.Health.State = state
			return v
		}
		t.Run(state.String(), func(t *testing.T) {
			t.Parallel()
			play(t, base, []scene{
				{"the other voters' writes are 1.5 times faster", nil, StepLeaderStepsDown, ""},
				{
					"the other voters' writes are a little less than 1.5 times faster",
					both(Writes{Mean: 6*ms + 1}), StepNone, none,
				},
				{"the other voters' writes are as slow", both(Writes{Mean: 9 * ms}), StepNone, none},
				{"they are 1.5 times faster, but this disk is as fast as usual", func(v *View) {
					v.Health.AsUsual = true
				}, StepNone, none},
				{"they are three times faster than this disk, which is as fast as usual", func(v *View) {
					v.Health.AsUsual = true
					both(Writes{Mean: 3 * ms})(v)
				}, StepLeaderStepsDown, ""},
				{"they are slower", both(Writes{Mean: 30 * ms}), StepNone, none},
				{"their measurements are unknown", both(Writes{}), StepNone, none},
				{"their measurements are old", both(Writes{Mean: ms, Age: writesOldest + 1}), StepNone, none},
				{
					"their measurements are just recent enough",
					both(Writes{Mean: ms, Age: writesOldest}), StepLeaderStepsDown,
					"",
				},
				{"its own measurement is unknown", func(v *View) { v.Health.Writes = 0 }, StepNone, none},
				{"it is SLOW for a reason other than writes", func(v *View) {
					both(Writes{})(v)
					v.Health.SlowWrites = false
				}, StepLeaderStepsDown, ""},
			})
		})
	}
	play(t, slowLeader, []scene{
		{"a write of the leader hangs", hung(health.Stalled), StepLeaderStepsDown, ""},
		{"the leader's disk has failed", hung(health.Failed), StepLeaderStepsDown, ""},
	})
	v := slowLeader()
	v.Hosts[1].Writes = Writes{} // n2's p99 is better, but it has no measured writes
	v.Hosts[1].P99 = ms
	if d := Decide(v); d.Step.MemberID != 3 {
		t.Errorf("leadership is transferred to member %d, want n3, the only one known to be better", d.Step.MemberID)
	}
	v.Hosts[2].Writes.Mean = 7 * ms
	d := Decide(v)
	want := "no other voter is at least 1.5 times faster: n2 has published no write measurements, " +
		"n3 takes 7ms per write on average, and this host takes 9ms"
	if len(d.Reasons) != 1 || d.Reasons[0].Code != LeaderSlow || !strings.Contains(d.Reasons[0].Text, want) {
		t.Errorf("reasons are %v, want %q", d.Reasons, want)
	}
}

func TestWritesAreComparedByMedianByPercentileAndBySlowEpisodes(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	own := WriteFigures{P50: 3 * ms, P90: 6 * ms, Tails: 12}
	for _, c := range []struct {
		what  string
		other Writes
		moves bool
	}{
		{"1.5 times shorter median", Writes{WriteFigures: WriteFigures{2 * ms, 5 * ms, 12}}, true},
		{"1.5 times shorter p90", Writes{WriteFigures: WriteFigures{3 * ms, 4 * ms, 12}}, true},
		{"a third of the slow episodes", Writes{WriteFigures: WriteFigures{3 * ms, 6 * ms, 4}}, true},
		{"as fast", Writes{WriteFigures: WriteFigures{3 * ms, 6 * ms, 12}}, false},
		{"a little faster", Writes{WriteFigures: WriteFigures{2*ms + 1, 4*ms + 1, 5}}, false},
		{"a shorter median, but a longer p90", Writes{WriteFigures: WriteFigures{ms, 9 * ms, 0}}, false},
		{"a shorter median, but a mean of 10 ms", Writes{Mean: 10 * ms, WriteFigures: WriteFigures{ms, ms, 0}}, false},
		{"a shorter median, but a longer mean", Writes{Mean: 19 * ms, WriteFigures: WriteFigures{ms, ms, 0}}, false},
		{"old figures", Writes{WriteFigures: WriteFigures{ms, ms, 0}, FiguresAge: figuresOldest + 1}, false},
		{"no figures", Writes{}, false},
		{"a shorter mean", Writes{Mean: 6 * ms, WriteFigures: WriteFigures{3 * ms, 6 * ms, 12}}, true},
	} {
		v := slowLeader()
		v.Health.State, v.Hosts[0].Health, v.Health.Figures = health.Warm, health.Warm, own
		v.Hosts[1].Writes, v.Hosts[2].Writes = c.other, c.other
		want := StepNone
		if c.moves {
			want = StepLeaderStepsDown
		}
		if d := Decide(v); d.Step.Kind != want {
			t.Errorf("%s: %+v, want %s", c.what, d, want)
		}
	}
}

func TestALeaderWhoseWritesAreFastAgainKeepsLeading(t *testing.T) {
	t.Parallel()
	v := slowLeader()
	if d := Decide(v); d.Step.Kind != StepLeaderStepsDown {
		t.Fatalf("while it is slow: %+v", d)
	}
	v.Health.FastAgain = true
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Errorf("while it is fast again: %+v", d)
	}
	v.Health.SlowWrites = false
	if d := Decide(v); d.Step.Kind != StepLeaderStepsDown {
		t.Errorf("with a finding other than slow writes: %+v", d)
	}
}

func TestALeaderWhoseEtcdAnswersAgainKeepsLeading(t *testing.T) {
	t.Parallel()
	v := slowLeader()
	v.Health.State, v.Hosts[0].Health, v.Health.SlowWrites = health.Stalled, health.Stalled, false
	if d := Decide(v); d.Step.Kind != StepLeaderStepsDown {
		t.Fatalf("while it hangs: %+v", d)
	}
	v.Health.AnswersAgain = true
	if d := Decide(v); d.Step.Kind != StepNone || UnfitNow(v.Health) {
		t.Errorf("once it answers: %+v", d)
	}
}

func TestAVoterPublishesFiguresWhileAnotherVoterAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what      string
		change    func(v *View)
		publishes bool
	}{
		{"no host asks", func(*View) {}, false},
		{"another voter asks", func(v *View) { v.Hosts[1].AsksWrites = true }, true},
		{"it asks itself", func(v *View) { v.Hosts[0].AsksWrites = true }, false},
		{"a host without a member asks", func(v *View) {
			v.Hosts = append(v.Hosts, Host{ID: "s", PeerURL: "http://s:2380", AsksWrites: true})
		}, false},
	} {
		v := slowLeader()
		if c.change(&v); PublishesWriteFigures(v) != c.publishes {
			t.Errorf("%s: publishes is %v", c.what, !c.publishes)
		}
	}
}

func TestAVoterPublishesItsWritesWhileTheLeaderIsUnhealthy(t *testing.T) {
	t.Parallel()
	base := func() View { // n1 follows n2
		v := slowLeader()
		v.Cluster.Members[0].Leader, v.Cluster.Members[1].Leader = false, true
		v.Hosts[1].Health = health.Warm
		return v
	}
	for name, c := range map[string]struct {
		change    func(v *View)
		publishes bool
	}{
		"the leader is WARM":                 {func(*View) {}, true},
		"the leader is SLOW":                 {func(v *View) { v.Hosts[1].Health = health.Slow }, true},
		"the leader is OK":                   {func(v *View) { v.Hosts[1].Health = health.OK }, false},
		"the leader's writes are fast again": {func(v *View) { v.Hosts[1].Recovers = true }, false},
		"the leader's finding does not gate leadership": {
			func(v *View) { v.Hosts[1].Ungated = health.Leadership }, false,
		},
		"the leader's host has no record": {func(v *View) {
			v.Hosts = []Host{v.Hosts[0], v.Hosts[2]}
		}, false},
		"this host leads":       {func(v *View) { *v = slowLeader() }, false},
		"this host is no voter": {func(v *View) { v.Cluster.Members[0].Learner = true }, false},
		"this host is a spare":  {func(v *View) { v.Cluster.Members = v.Cluster.Members[1:] }, false},
	} {
		v := base()
		if c.change(&v); PublishesWrites(v) != c.publishes {
			t.Errorf("%s: published %t", name, !c.publishes)
		}
	}
}

func TestAnUnhealthyLeaderTransfersLeadership(t *testing.T) {
	t.Parallel()
	play(t, slowLeader, []scene{
		{"the leader is SLOW", nil, StepLeaderStepsDown, ""},
		{"the leader is only WARM", func(v *View) { v.Health.State = health.Warm }, StepLeaderStepsDown, ""},
		{"the leader is healthy", func(v *View) { v.Health.State = health.OK }, StepNone, Idle},
		{"the leader's health is unknown", func(v *View) { v.Health.State = health.Unknown }, StepNone, Idle},
		{"the finding does not gate leadership", func(v *View) {
			v.Health.Ungated = health.Leadership
		}, StepNone, Idle},
		{"the slow writes are usual at this hour", func(v *View) {
			v.Health.SlowWrites, v.Health.Habitual = true, true
		}, StepNone, Idle},
		{"it is not urgent, and less than a minute has passed", func(v *View) {
			v.Health.SlowWrites, v.Health.Urgent = true, false
			v.LeadershipTransfers.UnfitFor = v.Limits.TransferInterval - time.Second
		}, StepNone, LeaderSlow},
		{"it is not urgent, and a minute has passed", func(v *View) {
			v.Health.SlowWrites, v.Health.Urgent = true, false
			v.LeadershipTransfers.UnfitFor = v.Limits.TransferInterval
		}, StepLeaderStepsDown, ""},
		{"slow writes are usual at this hour, but they hang", func(v *View) {
			v.Health.State, v.Health.SlowWrites, v.Health.Habitual = health.Stalled, true, true
		}, StepLeaderStepsDown, ""},
		{"slow writes are usual at this hour, but there is another finding", func(v *View) {
			v.Health.SlowWrites, v.Health.Habitual = false, true
		}, StepLeaderStepsDown, ""},
		{"another voter leads", func(v *View) {
			v.Cluster.Members[0].Leader, v.Cluster.Members[1].Leader = false, true
		}, StepNone, Idle},
		{"the voter with the faster disk is unhealthy", func(v *View) {
			v.Hosts[2].Health = health.Slow
		}, StepLeaderStepsDown, ""},
		{"a voter is down", func(v *View) {
			v.Cluster.Members[2].Live = false
		}, StepLeaderStepsDown, ""},
		{"another host joins", func(v *View) {
			v.Op = &Op{Kind: KindJoin, Host: "n4", HostName: "n4", MemberID: 4, PeerURL: peerPrefix + "n4"}
		}, StepLeaderStepsDown, ""},
		{"the cluster is paused", func(v *View) { v.Pause = &Pause{By: "root", Reason: "testing"} }, StepNone, Paused},
		{"the agent only observes", func(v *View) { v.Self.Mode = Observe }, StepNone, ModeObserve},
		{"this agent holds the lock", func(v *View) {
			v.Lock = Lock{Known: true, Held: true, Mine: true, Token: 7}
		}, StepReleaseLock, ""},
		{
			"the endpoints belong to a different cluster",
			func(v *View) { v.Cluster.ExpectedID = 9 }, StepNone, ClusterIDMismatch,
		},
	})
}

func TestALeaderTransfersLeadershipOnlyToABetterVoter(t *testing.T) {
	t.Parallel()
	both := func(change func(v *View, m *Member, h *Host)) func(v *View) {
		return func(v *View) {
			for i := range 2 {
				change(v, &v.Cluster.Members[i+1], &v.Hosts[i+1])
			}
		}
	}
	play(t, slowLeader, []scene{
		{"this host and the other voters are WARM", func(v *View) {
			v.Health.State, v.Hosts[1].Health, v.Hosts[2].Health = health.Warm, health.Warm, health.Warm
		}, StepNone, Idle},
		{
			"the other voters are WARM",
			both(func(_ *View, _ *Member, h *Host) { h.Health = health.Warm }), StepNone, LeaderSlow,
		},
		{"their health is unknown", both(func(_ *View, _ *Member, h *Host) {
			h.Health = health.Unknown
		}), StepNone, LeaderSlow},
		{"all are unhealthy", both(func(_ *View, _ *Member, h *Host) {
			h.Health = health.Stalled
		}), StepNone, CommonCause},
		{"one voter is unhealthy, and the other's health is unknown", func(v *View) {
			v.Hosts[1].Health, v.Hosts[2].Health = health.Slow, health.Unknown
		}, StepNone, LeaderSlow},
		{"one voter is down, and the other unhealthy", func(v *View) {
			v.Cluster.Members[1].Live, v.Hosts[2].Health = false, health.Slow
		}, StepNone, VoterNotLive},
		{
			"the other voters report errors",
			both(func(_ *View, m *Member, _ *Host) { m.Errors = true }), StepNone, LeaderSlow,
		},
		{"their agents are gone", func(v *View) { v.Hosts = v.Hosts[:1] }, StepNone, LeaderSlow},
		{"the other voters' hosts have requests", both(func(_ *View, _ *Member, h *Host) {
			h.Wants, h.Waiting = WorkReboot, CycleQueued
		}), StepNone, LeaderSlow},
		{"one host is in an operation without a record, the other is queued", func(v *View) {
			v.Hosts[1].InOperation, v.Hosts[2].Waiting = true, InMaintenance
		}, StepNone, LeaderSlow},
		{"one host is next in the queue, the other next in a rollout", func(v *View) {
			v.Queue = &Queue{Down: []string{"n2"}}
			v.Rollout = &Rollout{Runs: true, Waiting: []string{"n3"}}
		}, StepNone, LeaderSlow},
		{"one voter is in an operation, the other unhealthy", func(v *View) {
			v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", MemberID: 2}
			v.Hosts[2].Health = health.Slow
		}, StepNone, OperationInFlight},
		{"one voter is being removed by the other's host", func(v *View) {
			v.Op = &Op{Kind: KindRemove, Host: "n3", HostName: "n3", MemberID: 2, Phase: PhaseRemoving}
		}, StepNone, OperationInFlight},
		{"one voter is being replaced, the other unhealthy", func(v *View) {
			v.Op = &Op{Kind: KindReplace, Host: "n4", HostName: "n4", Replaces: 2, Phase: PhaseBegun}
			v.Hosts[2].Health = health.Slow
		}, StepNone, OperationInFlight},
		{"it is the only voter", func(v *View) {
			v.Cluster.Members, v.Hosts, v.Target.Voters = v.Cluster.Members[:1], v.Hosts[:1], 1
		}, StepNone, LeaderSlow},
	})
}

func TestLeadershipIsTransferredToTheBestVoter(t *testing.T) {
	t.Parallel()
	v := turnView()
	v.Cluster.Members[0].Leader, v.Cluster.Members[2].Leader = false, true
	for _, c := range []struct {
		name   string
		change func(v *View)
		to     uint64
	}{
		{"all equal: the first", func(*View) {}, 1},
		{"the healthier one", func(v *View) { v.Hosts[0].Health = health.Warm }, 2},
		{"the one with the faster disk", func(v *View) {
			v.Hosts[0].P99, v.Hosts[1].P99 = time.Second, time.Millisecond
		}, 2},
		{"the nearer one", func(v *View) {
			v.Cluster.Members[0].RTT, v.Cluster.Members[1].RTT = 5*time.Millisecond, time.Millisecond
		}, 2},
		{"distances below 2 ms do not matter", func(v *View) {
			v.Cluster.Members[0].RTT, v.Cluster.Members[1].RTT = 1900*time.Microsecond, 100*time.Microsecond
		}, 1},
		{"the one connected for longer", func(v *View) { v.Cluster.Members[1].LiveFor = 2 * time.Hour }, 2},
		{"the other one is to be taken down", func(v *View) {
			v.Hosts[0].Wants, v.Hosts[0].AskedAt = WorkRestart, 2000
		}, 2},
	} {
		w := v
		w.Hosts = append([]Host(nil), v.Hosts...)
		w.Cluster.Members = append([]Member(nil), v.Cluster.Members...)
		c.change(&w)
		if d := Decide(w); d.Step.Kind != StepTransferLeadership || d.Step.MemberID != c.to {
			t.Errorf("%s: %v to %d, want %d", c.name, d.Step.Kind, d.Step.MemberID, c.to)
		}
	}
}

func TestTheIntervalOfLeadershipTransfersDoubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inRow int
		pace  time.Duration
	}{
		{0, time.Minute},
		{1, time.Minute},
		{2, 2 * time.Minute},
		{6, 32 * time.Minute},
		{7, 32 * time.Minute},
		{1000, 32 * time.Minute},
	} {
		v := slowLeader()
		v.LeadershipTransfers.InRow, v.LeadershipTransfers.LeadsFor = c.inRow, v.Limits.Settle // the host leads again
		v.LeadershipTransfers.LastFor = c.pace - 1
		if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != LeaderSlow {
			t.Errorf("%d times: before %s it decides %+v", c.inRow, c.pace, d)
		}
		v.LeadershipTransfers.LastFor = c.pace
		if d := Decide(v); d.Step.Kind != StepLeaderStepsDown {
			t.Errorf("%d times: after %s it waits: %v", c.inRow, c.pace, d.Reasons)
		}
	}
	play(t, slowLeader, []scene{
		{"it has only just become the leader", func(v *View) {
			v.LeadershipTransfers.LeadsFor = v.Limits.Settle - time.Second
		}, StepNone, LeaderSlow},
		{"its health state is so new that the others may not have published theirs", func(v *View) {
			v.LeadershipTransfers.UnfitFor = v.Limits.Settle - time.Second
		}, StepNone, LeaderSlow},
		{"its health state has lasted for long enough", func(v *View) {
			v.LeadershipTransfers.UnfitFor = v.Limits.Settle
		}, StepLeaderStepsDown, ""},
		{
			"it has led for long enough", func(v *View) { v.LeadershipTransfers.LeadsFor = v.Limits.Settle },
			StepLeaderStepsDown, "",
		},
		{"etcd has refused the last transfer", func(v *View) {
			v.LeadershipTransfers.LastFor, v.LeadershipTransfers.InRow = 4*time.Second, 1
			v.Failed = FailedStep{Kind: StepLeaderStepsDown, Text: "request timed out"}
		}, StepNone, LeaderSlow},
	})
}

func TestAFailedLeadershipTransferIsRetriedSoonerWithADoublingInterval(t *testing.T) {
	t.Parallel()
	for inRow, pace := range map[int]time.Duration{
		1: 6 * time.Second, 2: 12 * time.Second, 5: 96 * time.Second, 9: 1536 * time.Second, 10: 32 * time.Minute,
		1000: 32 * time.Minute,
	} {
		v := slowLeader()
		v.LeadershipTransfers = LeadershipTransfers{
			LeadsFor: 10 * time.Hour,
			UnfitFor: time.Hour,
			InRow:    inRow,
			LastFor:  pace - 1,
		}
		if d := Decide(v); d.Step.Kind != StepNone || d.Reasons[0].Code != LeaderSlow {
			t.Errorf("%d times: before %s it decides %+v", inRow, pace, d)
		}
		v.LeadershipTransfers.LastFor = pace
		if d := Decide(v); d.Step.Kind != StepLeaderStepsDown {
			t.Errorf("%d times: after %s it waits: %v", inRow, pace, d.Reasons)
		}
	}
}

// unread returns the view of slowLeader while linearizable reads time out, so that n1 reads only from its own member.
func unread() View {
	led := slowLeader()
	led.Cluster.Led, led.Cluster.Unread, led.Limits.HealthDelay = true, true, 10*time.Second
	v := slowLeader()
	v.Cluster = Cluster{Error: "a linearizable read takes longer than 2s", Fresh: true, ExpectedID: v.Cluster.ID}
	v.Hosts, v.Lock, v.Led = nil, Lock{}, &led
	return v
}

func TestALeaderWithoutTimelyReadsTransfersLeadership(t *testing.T) {
	t.Parallel()
	play(t, unread, []scene{
		{"its own member and the published health states suffice", nil, StepLeaderStepsDown, ""},
		{"no voter's measurement is known", func(v *View) {
			v.Led.Hosts[1].Writes, v.Led.Hosts[2].Writes, v.Led.Health.Writes = Writes{}, Writes{}, 0
		}, StepLeaderStepsDown, ""},
		{"its own member's view was not read", func(v *View) { v.Led = nil }, StepNone, NoQuorum},
		{"the others may not have published their health states yet", func(v *View) {
			v.Led.LeadershipTransfers.UnfitFor = v.Led.Limits.HealthDelay - time.Second
		}, StepNone, LeaderSlow},
		{"the others may not have published theirs, but reads succeed", func(v *View) {
			v.Led.LeadershipTransfers.UnfitFor, v.Led.Cluster.Unread = v.Led.Limits.HealthDelay-time.Second, false
		}, StepLeaderStepsDown, ""},
		{"too few voters follow it", func(v *View) {
			v.Led.Cluster.Members[1].Live, v.Led.Cluster.Members[2].Live = false, false
		}, StepNone, LeaderSlow},
		{"only one voter follows it", func(v *View) { v.Led.Cluster.Members[2].Live = false }, StepLeaderStepsDown, ""},
		{"both other voters lag", func(v *View) {
			v.Led.Cluster.Members[1].BehindFor, v.Led.Cluster.Members[2].BehindFor = time.Minute, time.Minute
		}, StepNone, LeaderSlow},
		{"all voters are unhealthy", func(v *View) {
			v.Led.Hosts[1].Health, v.Led.Hosts[2].Health = health.Slow, health.Slow
		}, StepNone, CommonCause},
		{"this host's member reports another voter's operation", func(v *View) {
			v.Led.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", MemberID: 2}
			v.Led.Hosts[2].Health = health.Slow
		}, StepNone, LeaderSlow},
		{"this host's member reports a pause", func(v *View) {
			v.Led.Pause = &Pause{By: "root", Reason: "testing"}
		}, StepNone, Paused},
		{"a record in etcd is unreadable", func(v *View) {
			v.Led.Unreadable = []Unreadable{{Kind: RecordPause, Key: "/quorumd/c/pause", Why: "bad"}}
		}, StepNone, RecordUnreadable},
	})
}

func TestTheCountOfLeadershipTransfersIsForgottenInTime(t *testing.T) {
	t.Parallel()
	limits := Limits{TransferInterval: time.Minute}
	for last, want := range map[time.Duration]int{0: 4, 64 * time.Minute: 4, 64*time.Minute + 1: 1, Never: 1} {
		if got := (LeadershipTransfers{LastFor: last, InRow: 3}).NextInRow(limits); got != want {
			t.Errorf("%s after the third time it is number %d, want %d", last, got, want)
		}
	}
}

func TestASlowLeaderIsReportedAlongWithOtherReasons(t *testing.T) {
	t.Parallel()
	v := slowLeader()
	v.Hosts[1].Health = health.Slow
	v.Cluster.Members[2].Live = false
	d := Decide(v)
	if len(d.Reasons) != 2 || d.Reasons[0].Code != VoterNotLive || d.Reasons[1].Code != LeaderSlow ||
		len(d.Cautions()) != 1 {
		t.Errorf("the reasons are %v", d.Reasons)
	}
}

func TestATransferFailedOnlyIfTheMemberHasLedSinceBeforeIt(t *testing.T) {
	t.Parallel()
	limits := spareView().Limits
	for led, want := range map[time.Duration]time.Duration{
		time.Hour:     2 * limits.TransferInterval,
		time.Hour - 1: 2 * limits.TransferInterval,
		time.Hour + 1: 2 * limits.Settle,
	} {
		if got := (LeadershipTransfers{LeadsFor: led, LastFor: time.Hour, InRow: 2}).pace(limits); got != want {
			t.Errorf("after it has led for %s, it waits for %s, want %s", led, got, want)
		}
	}
}

func TestAPauseThatThisHostsMemberDoesNotReportWithholdsEveryStepButTheTransfer(t *testing.T) {
	t.Parallel()
	play(t, emptiedView, []scene{
		{"this host's member reports no pause", func(v *View) {
			v.Self.LostID = 3
			led := *v
			v.Led, v.Pause = &led, &Pause{By: "root"}
		}, StepNone, Paused},
	})
}
