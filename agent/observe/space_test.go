// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// alarmed is an agent that observes whether etcd has space.
type alarmed struct {
	b  *Builder
	at time.Duration
	n  uint64
}

func newAlarmed() *alarmed {
	return &alarmed{b: &Builder{config: config.Config{Space: config.Space{
		NoSpace: config.NoSpaceRemediate, Retain: 10 * time.Minute,
	}}}, at: time.Hour}
}

// look observes the cluster after a time. The revision is the clock's time in seconds.
func (a *alarmed) look(after time.Duration, roomy bool, did round.ActorState) policy.Space {
	a.at += after
	a.n++
	v := policy.View{Cluster: policy.Cluster{Roomy: roomy}}
	r := &round.Round{At: a.at, Number: a.n, Did: did}
	r.Revision, r.StatusesAt = int64(a.at/time.Second), a.at
	s := a.b.spaceOf(&v, r)
	a.b.since.Forget(a.n)
	return s
}

func stamp(at time.Duration) round.Stamp { return round.Stamp{Is: true, At: at} }

func TestACompactionKeepsTheHistoryOfTheConfiguredTime(t *testing.T) {
	t.Parallel()
	a := newAlarmed()
	for range 60 {
		if s := a.look(10*time.Second, true, round.ActorState{}); s.Keep != 0 && a.n <= 60 {
			t.Fatalf("after %d rounds the agent keeps revision %d of a time before its start", a.n, s.Keep)
		}
	}
	for range 60 {
		now := int64(a.at/time.Second) + 10
		if s := a.look(10*time.Second, true, round.ActorState{}); s.Keep > now-600 || s.Keep < now-640 {
			t.Fatalf("at %d the agent keeps revision %d", now, s.Keep)
		}
	}
}

func TestAPermitCountsForItsAlarmAndNotAfterAGap(t *testing.T) {
	t.Parallel()
	a := newAlarmed()
	a.look(0, true, round.ActorState{})
	earlier := stamp(a.at)
	a.look(time.Second, false, round.ActorState{})
	mine := stamp(a.at)
	if s := a.look(time.Second, false, round.ActorState{Permit: earlier}); s.Mine != 0 {
		t.Errorf("a permit from before the alarm is valid for %s", s.Mine)
	}
	if s := a.look(10*time.Second, false, round.ActorState{Permit: mine}); s.Mine != policy.PermitValid-11*time.Second {
		t.Errorf("the permit is valid for %s", s.Mine)
	}
	if s := a.look(policy.PermitSettle, false, round.ActorState{Permit: mine}); s.Mine != 0 {
		t.Errorf("after a gap, in which the alarm may have ended, the permit is valid for %s", s.Mine)
	}
}

func TestTheOutcomeOfADefragmentationCountsOnceItsEffectIsRead(t *testing.T) {
	t.Parallel()
	a := newAlarmed()
	a.look(0, false, round.ActorState{})
	at := a.at + 20*time.Second
	did := round.ActorState{Defragmented: []round.Defragmented{
		{MemberID: 7, At: at, Err: errors.New("no space left on device")},
	}}
	if s := a.look(20*time.Second, false, did); s.Defragmenting != 7 || len(s.Attempts) != 0 {
		t.Errorf("the members were asked before the end: %+v", s)
	}
	s := a.look(time.Second, false, did)
	if len(s.Attempts) != 1 || s.Attempts[0].Failed != "no space left on device" || s.Defragmenting != 0 {
		t.Errorf("%+v", s)
	}
	if s := a.look(policy.DefragmentAgain, false, did); len(s.Attempts) != 0 {
		t.Errorf("an old attempt counts: %+v", s.Attempts)
	}
	did.Defragmented[0].At, did.Compacted = a.at-time.Second, stamp(a.at)
	if s := a.look(time.Second, false, did); len(s.Attempts) != 0 {
		t.Errorf("an attempt from before a compaction counts: %+v", s.Attempts)
	}
}

func TestAnAgentKnowsWhetherItMayRequestADefragmentationAndWhenTheLastOneEnded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		when  config.Defrag
		from  string
		ended time.Time
		want  policy.AutomaticDefrag
	}{
		"never": {config.DefragOff, "02:00", time.Time{}, policy.AutomaticDefrag{Ended: policy.Never}},
		"now": {
			config.DefragWindows, "02:00", now.Add(-time.Hour), policy.AutomaticDefrag{Windows: true, Ended: time.Hour},
		},
		"closed": {config.DefragWindows, "04:00", time.Time{}, policy.AutomaticDefrag{
			Windows: true, Shut: "no maintenance window is open", Ended: policy.Never,
		}},
		"the clock was set back": {config.DefragOff, "02:00", now.Add(1), policy.AutomaticDefrag{Ended: policy.Never}},
	} {
		b := &Builder{config: config.Config{
			Space:       config.Space{Defrag: c.when},
			Maintenance: config.Maintenance{Windows: []string{"daily " + c.from + "-05:00 UTC"}},
		}}
		r := &round.Round{Wall: now}
		if r.Noted.DefragEnded = c.ended; b.automaticDefrag(r) != c.want {
			t.Errorf("%s: %+v, want %+v", name, b.automaticDefrag(r), c.want)
		}
	}
}
