// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestAWishForTheSameRenewsWhatIsAskedAndAnyOtherIsRefused(t *testing.T) {
	t.Parallel()
	wish := func(change func(s *Standing)) Standing {
		s := Standing{By: "alice", Work: WorkReboot, Reason: "kernel"}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		stands, wish func(s *Standing)
		says         string // empty: it is renewed
		hurried      bool   // then
	}{
		"the same":                       {wish: func(s *Standing) { s.By = "root" }},
		"the same, at once":              {wish: func(s *Standing) { s.Hurried = true }, hurried: true},
		"the same, in no hurry any more": {stands: func(s *Standing) { s.Hurried = true }, hurried: true},
		"another work": {
			wish: func(s *Standing) { s.Work = WorkRestart },
			says: "another reboot was already requested, by alice: kernel",
		},
		"another work, at once": {
			wish: func(s *Standing) { s.Work, s.Hurried = WorkMaintenance, true },
			says: "another reboot", hurried: true,
		},
		"another work, at once, beside one that the machine must not go down for": {
			stands: func(s *Standing) { s.Work = WorkRestart }, wish: func(s *Standing) { s.Hurried = true },
			says: "another restart",
		},
		"another program":    {wish: func(s *Standing) { s.Program = "upgrade" }, says: "another reboot"},
		"etcd keeps running": {wish: func(s *Standing) { s.KeepRunning = true }, says: "another reboot"},
		"by somebody else":   {wish: func(s *Standing) { s.External = true }, says: "another reboot"},
		"what is over": {
			stands: func(s *Standing) { s.Ended = true }, says: "of alice, is just ending",
		},
		"what is over, at once": {
			stands: func(s *Standing) { s.Ended = true }, wish: func(s *Standing) { s.Hurried = true },
			says: "just ending",
		},
		"a command that was started": {
			stands: func(s *Standing) { s.Ran, s.Program = HooksRunning, "upgrade" },
			wish:   func(s *Standing) { s.Program = "upgrade" },
			says:   "upgrade, requested by alice, was started already",
		},
	} {
		stands, wish := wish(c.stands), wish(c.wish)
		wish.Reason = "firmware"
		want := stands
		if want.Hurried = c.hurried; c.says == "" {
			want.Reason = wish.Reason
		}
		got, refused := stands.Renewed(wish)
		switch {
		case got != want:
			t.Errorf("%s: it stands as %+v, want %+v", name, got, want)
		case (refused == nil) != (c.says == "") || refused != nil && !strings.Contains(refused.Text, c.says):
			t.Errorf("%s: refused as %+v, want %q", name, refused, c.says)
		}
	}
}

func TestWhatNoWaitingWouldMakePossibleIsNotAskedFor(t *testing.T) {
	t.Parallel()
	own := &Op{Kind: KindCycle, Host: "a"}
	for name, c := range map[string]struct {
		mode           Mode
		op             *Op
		asked, reboots bool
		wish           Standing
		says           string // empty: it is asked for
	}{
		"maintenance": {mode: Manage, wish: Standing{Work: WorkMaintenance}},
		"a host that only observes": {
			mode: Observe, wish: Standing{Work: WorkMaintenance}, says: "only observes",
		},
		"a reboot":                         {mode: Manage, wish: Standing{Work: WorkReboot}, reboots: true},
		"a reboot that nobody here can do": {mode: Manage, wish: Standing{Work: WorkReboot}, says: "no way to reboot"},
		"a reboot by somebody else":        {mode: Manage, wish: Standing{Work: WorkReboot, External: true}},
		"a restart":                        {mode: Manage, wish: Standing{Work: WorkRestart}},
		"a restart that is none": {
			mode: Manage, wish: Standing{Work: WorkRestart, KeepRunning: true}, says: "cannot keep etcd running",
		},
		"the last one is at its end": {
			mode: Manage, wish: Standing{Work: WorkRestart}, op: own, says: "just ending",
		},
		"the last one goes on": {mode: Manage, wish: Standing{Work: WorkRestart}, op: own, asked: true},
		"another host is in its turn": {
			mode: Manage, wish: Standing{Work: WorkRestart}, op: &Op{Kind: KindCycle, Host: "b"},
		},
		"this host joins": {
			mode: Manage, wish: Standing{Work: WorkReboot}, reboots: true, op: &Op{Kind: KindJoin, Host: "a"},
		},
	} {
		v := View{Self: Self{ID: "a", Mode: c.mode}, Op: c.op}
		got := AgainstAsking(v, c.asked, c.wish, c.reboots)
		if (got == nil) != (c.says == "") || got != nil && (!strings.Contains(got.Text, c.says) || got.Hint == "") {
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		}
	}
}

func TestEveryTransitionChangesWhatItIsNamedForAndNothingElse(t *testing.T) {
	t.Parallel()
	waits := Standing{Work: WorkCommand, Program: "upgrade", OtherBoot: true}
	all := Standing{
		Work: WorkCommand, Hurried: true, Ended: true, Waived: true, Begun: true, Seen: true, Stopped: true,
		Ran: HooksDone, OtherBoot: true,
	}
	for name, c := range map[string]struct {
		move func(Standing) Standing
		want func(s *Standing)
	}{
		"unhurried":                 {Standing.Unhurried, func(s *Standing) { s.Hurried = false }},
		"it begins":                 {Standing.Begins, func(s *Standing) { s.Begun, s.OtherBoot = true, false }},
		"its operation is in etcd":  {Standing.Recorded, func(s *Standing) { s.Seen = true }},
		"etcd is up":                {Standing.EtcdStarted, func(s *Standing) { s.Stopped = false }},
		"its operation ends":        {Standing.OperationEnds, func(s *Standing) { s.Seen, s.Ended = false, true }},
		"its operation is given up": {Standing.GivenUp, func(s *Standing) { s.Seen, s.Begun = false, false }},
		"its program has failed": {
			func(s Standing) Standing { return s.ProgramEnded(HooksFailed) }, func(s *Standing) { s.Ran = HooksFailed },
		},
	} {
		for _, s := range []Standing{waits, all} {
			want := s
			c.want(&want)
			if got := c.move(s); got != want {
				t.Errorf("%s: %+v becomes %+v, want %+v", name, s, got, want)
			}
		}
	}
	over := Standing{Ended: true}
	if s, stands := over.StopsEtcd(); stands || s != over {
		t.Errorf("etcd is stopped for what is over: %+v", s)
	}
	if s, stands := over.StartsProgram(); stands || s != over {
		t.Errorf("a program is started for what is over: %+v", s)
	}
	if s, stands := waits.StopsEtcd(); !stands || !s.Stopped || s.Ran != HooksNone {
		t.Errorf("for what waits etcd is not stopped: %+v", s)
	}
	ended := Standing{Ran: HooksFailed}
	if s, stands := ended.StartsProgram(); !stands || s != ended {
		t.Errorf("a program that has ended becomes %+v", s)
	}
	if s, stands := waits.StartsProgram(); !stands || s.Ran != HooksRunning || s.Stopped {
		t.Errorf("for what waits no program is started: %+v", s)
	}
}

func TestThatTheProgramsAreNotWaitedForIsSaidOnceAndStands(t *testing.T) {
	t.Parallel()
	down := Standing{By: "alice", Work: WorkMaintenance, Begun: true, Stopped: true}
	over, withdrawn, refused := down.Finished(false, false)
	if !over.Ended || over.Waived || withdrawn || refused != nil {
		t.Fatalf("got %+v, withdrawn %v, refused %v", over, withdrawn, refused)
	}
	waived, _, _ := over.Finished(true, false)
	if !waived.Ended || !waived.Waived {
		t.Errorf("a person waives the programs, and it stands as %+v", waived)
	}
	if again, _, _ := waived.Finished(false, false); !again.Waived {
		t.Errorf("another word takes that back: %+v", again)
	}
}
