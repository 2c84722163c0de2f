// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestTheSameRequestRenewsThePendingOneAndAnyOtherIsRefused(t *testing.T) {
	t.Parallel()
	request := func(change func(s *Standing)) Standing {
		s := Standing{By: "alice", Work: WorkReboot, Reason: "kernel"}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		stands, asked func(s *Standing)
		says          string // refusal; empty if the request is renewed
		hurried       bool   // Hurried after the renewal
	}{
		"the same":                   {asked: func(s *Standing) { s.By = "root" }},
		"the same, urgent":           {asked: func(s *Standing) { s.Hurried = true }, hurried: true},
		"the same, no longer urgent": {stands: func(s *Standing) { s.Hurried = true }, hurried: true},
		"other work": {
			asked: func(s *Standing) { s.Work = WorkRestart },
			says:  "another reboot was already requested, by alice: kernel",
		},
		"other work, urgent": {
			asked: func(s *Standing) { s.Work, s.Hurried = WorkMaintenance, true },
			says:  "another reboot", hurried: true,
		},
		"other work, urgent, next to a request that does not allow a shutdown": {
			stands: func(s *Standing) { s.Work = WorkRestart }, asked: func(s *Standing) { s.Hurried = true },
			says: "another restart",
		},
		"another program":    {asked: func(s *Standing) { s.Program = "upgrade" }, says: "another reboot"},
		"etcd keeps running": {asked: func(s *Standing) { s.KeepRunning = true }, says: "another reboot"},
		"external":           {asked: func(s *Standing) { s.External = true }, says: "another reboot"},
		"a finished request": {
			stands: func(s *Standing) { s.Ended = true }, says: "by alice, is just ending",
		},
		"a finished request, urgent": {
			stands: func(s *Standing) { s.Ended = true }, asked: func(s *Standing) { s.Hurried = true },
			says: "just ending",
		},
		"a started command": {
			stands: func(s *Standing) { s.Ran, s.Program = HooksRunning, "upgrade" },
			asked:  func(s *Standing) { s.Program = "upgrade" },
			says:   "upgrade, requested by alice, was started already",
		},
	} {
		stands, asked := request(c.stands), request(c.asked)
		asked.Reason = "firmware"
		want := stands
		if want.Hurried = c.hurried; c.says == "" {
			want.Reason = asked.Reason
		}
		got, refused := stands.Renewed(asked)
		switch {
		case got != want:
			t.Errorf("%s: the request is %+v, want %+v", name, got, want)
		case (refused == nil) != (c.says == "") || refused != nil && !strings.Contains(refused.Text, c.says):
			t.Errorf("%s: refused as %+v, want %q", name, refused, c.says)
		}
	}
}

func TestAnImpossibleRequestIsRefused(t *testing.T) {
	t.Parallel()
	own := &Op{Kind: KindCycle, Host: "a"}
	for name, c := range map[string]struct {
		mode           Mode
		op             *Op
		asked, reboots bool
		request        Standing
		says           string // refusal; empty if the request is accepted
	}{
		"maintenance": {mode: Manage, request: Standing{Work: WorkMaintenance}},
		"a host that only observes": {
			mode: Observe, request: Standing{Work: WorkMaintenance}, says: "only observes",
		},
		"a reboot": {mode: Manage, request: Standing{Work: WorkReboot}, reboots: true},
		"a reboot without a way to reboot": {
			mode: Manage, request: Standing{Work: WorkReboot}, says: "no way to reboot",
		},
		"an external reboot": {mode: Manage, request: Standing{Work: WorkReboot, External: true}},
		"a restart":          {mode: Manage, request: Standing{Work: WorkRestart}},
		"a restart that keeps etcd running": {
			mode: Manage, request: Standing{Work: WorkRestart, KeepRunning: true}, says: "cannot keep etcd running",
		},
		"the last one is ending": {
			mode: Manage, request: Standing{Work: WorkRestart}, op: own, says: "just ending",
		},
		"the last one continues": {mode: Manage, request: Standing{Work: WorkRestart}, op: own, asked: true},
		"another host is in its operation": {
			mode: Manage, request: Standing{Work: WorkRestart}, op: &Op{Kind: KindCycle, Host: "b"},
		},
		"this host joins": {
			mode: Manage, request: Standing{Work: WorkReboot}, reboots: true, op: &Op{Kind: KindJoin, Host: "a"},
		},
	} {
		v := View{Self: Self{ID: "a", Mode: c.mode}, Op: c.op}
		got := AgainstRequest(v, c.asked, c.request, c.reboots)
		if (got == nil) != (c.says == "") || got != nil && (!strings.Contains(got.Text, c.says) || got.Hint == "") {
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		}
	}
}

func TestEveryTransitionChangesOnlyWhatItsNameSays(t *testing.T) {
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
		"unhurried":                  {Standing.Unhurried, func(s *Standing) { s.Hurried = false }},
		"it begins":                  {Standing.Begins, func(s *Standing) { s.Begun, s.OtherBoot = true, false }},
		"its operation is in etcd":   {Standing.Recorded, func(s *Standing) { s.Seen = true }},
		"etcd is up":                 {Standing.EtcdStarted, func(s *Standing) { s.Stopped = false }},
		"its operation ends":         {Standing.OperationEnds, func(s *Standing) { s.Seen, s.Ended = false, true }},
		"its operation is abandoned": {Standing.GivenUp, func(s *Standing) { s.Seen, s.Begun = false, false }},
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
		t.Errorf("etcd is stopped for a finished request: %+v", s)
	}
	if s, stands := over.StartsProgram(); stands || s != over {
		t.Errorf("a program is started for a finished request: %+v", s)
	}
	if s, stands := waits.StopsEtcd(); !stands || !s.Stopped || s.Ran != HooksNone {
		t.Errorf("etcd is not stopped for a waiting request: %+v", s)
	}
	ended := Standing{Ran: HooksFailed}
	if s, stands := ended.StartsProgram(); !stands || s != ended {
		t.Errorf("a finished program becomes %+v", s)
	}
	if s, stands := waits.StartsProgram(); !stands || s.Ran != HooksRunning || s.Stopped {
		t.Errorf("no program is started for a waiting request: %+v", s)
	}
}

func TestWaivedProgramsStayWaived(t *testing.T) {
	t.Parallel()
	down := Standing{By: "alice", Work: WorkMaintenance, Begun: true, Stopped: true}
	over, withdrawn, refused := down.Finished(false, false)
	if !over.Ended || over.Waived || withdrawn || refused != nil {
		t.Fatalf("got %+v, cancelled %v, refused %v", over, withdrawn, refused)
	}
	waived, _, _ := over.Finished(true, false)
	if !waived.Ended || !waived.Waived {
		t.Errorf("an operator waives the programs, and the request is %+v", waived)
	}
	if again, _, _ := waived.Finished(false, false); !again.Waived {
		t.Errorf("a second end revokes the waiver: %+v", again)
	}
}
