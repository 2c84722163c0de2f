// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestTheSameRequestRenewsThePendingOneAndAnyOtherIsRefused(t *testing.T) {
	t.Parallel()
	request := func(change func(s *Request)) Request {
		s := Request{By: "alice", Work: WorkReboot, Reason: "kernel"}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, c := range map[string]struct {
		pending, asked func(s *Request)
		refusal        string // part of the refusal's text; empty if the request is renewed
		hurried        bool   // whether the pending request is Hurried afterwards
	}{
		"the same":                   {asked: func(s *Request) { s.By = "root" }},
		"the same, urgent":           {asked: func(s *Request) { s.Hurried = true }, hurried: true},
		"the same, no longer urgent": {pending: func(s *Request) { s.Hurried = true }, hurried: true},
		"other work": {
			asked:   func(s *Request) { s.Work = WorkRestart },
			refusal: "this host already has a different request (reboot), by alice: kernel",
		},
		"other work, urgent": {
			asked:   func(s *Request) { s.Work, s.Hurried = WorkMaintenance, true },
			refusal: "different request (reboot)", hurried: true,
		},
		"other work, urgent, next to a request that does not allow a shutdown": {
			pending: func(s *Request) { s.Work = WorkRestart }, asked: func(s *Request) { s.Hurried = true },
			refusal: "different request (restart)",
		},
		"another program":    {asked: func(s *Request) { s.Program = "upgrade" }, refusal: "a different request"},
		"etcd keeps running": {asked: func(s *Request) { s.KeepRunning = true }, refusal: "different request (reboot)"},
		"external":           {asked: func(s *Request) { s.External = true }, refusal: "different request (reboot)"},
		"a finished request": {
			pending: func(s *Request) { s.Ended = true }, refusal: "by alice, is just ending",
		},
		"a finished request, urgent": {
			pending: func(s *Request) { s.Ended = true }, asked: func(s *Request) { s.Hurried = true },
			refusal: "just ending",
		},
		"a started command": {
			pending: func(s *Request) { s.Ran, s.Program = HooksRunning, "upgrade" },
			asked:   func(s *Request) { s.Program = "upgrade" },
			refusal: "upgrade, requested by alice, has already been started",
		},
	} {
		pending, asked := request(c.pending), request(c.asked)
		asked.Reason = "firmware"
		want := pending
		if want.Hurried = c.hurried; c.refusal == "" {
			want.Reason = asked.Reason
		}
		got, refused := pending.Renewed(asked)
		switch {
		case got != want:
			t.Errorf("%s: the request is %+v, want %+v", name, got, want)
		case (refused == nil) != (c.refusal == "") || refused != nil && !strings.Contains(refused.Text, c.refusal):
			t.Errorf("%s: refused as %+v, want %q", name, refused, c.refusal)
		}
	}
}

func TestAnImpossibleRequestIsRefused(t *testing.T) {
	t.Parallel()
	own := &Op{Kind: KindCycle, Host: "a"}
	for name, c := range map[string]struct {
		mode               Mode
		op                 *Op
		pending, canReboot bool
		request            Request
		refusal            string // part of the refusal's text; empty if the request is accepted
	}{
		"maintenance": {mode: Manage, request: Request{Work: WorkMaintenance}},
		"a host that only observes": {
			mode: Observe, request: Request{Work: WorkMaintenance}, refusal: "only observes",
		},
		"a reboot": {mode: Manage, request: Request{Work: WorkReboot}, canReboot: true},
		"a reboot without a way to reboot": {
			mode: Manage, request: Request{Work: WorkReboot}, refusal: "no way to reboot",
		},
		"an external reboot": {mode: Manage, request: Request{Work: WorkReboot, External: true}},
		"a restart":          {mode: Manage, request: Request{Work: WorkRestart}},
		"a restart that keeps etcd running": {
			mode: Manage, request: Request{Work: WorkRestart, KeepRunning: true}, refusal: "cannot keep etcd running",
		},
		"the last request is ending": {
			mode: Manage, request: Request{Work: WorkRestart}, op: own, refusal: "just ending",
		},
		"the last request continues": {mode: Manage, request: Request{Work: WorkRestart}, op: own, pending: true},
		"another host is in its operation": {
			mode: Manage, request: Request{Work: WorkRestart}, op: &Op{Kind: KindCycle, Host: "b"},
		},
		"this host joins": {
			mode: Manage, request: Request{Work: WorkReboot}, canReboot: true, op: &Op{Kind: KindJoin, Host: "a"},
		},
	} {
		v := View{Self: Self{ID: "a", Mode: c.mode}, Op: c.op}
		got := AgainstRequest(v, c.pending, c.request, c.canReboot)
		if (got == nil) != (c.refusal == "") ||
			got != nil && (!strings.Contains(got.Text, c.refusal) || got.Hint == "") {
			t.Errorf("%s: %+v, want %q", name, got, c.refusal)
		}
	}
}

func TestEveryTransitionChangesOnlyItsOwnFields(t *testing.T) {
	t.Parallel()
	waits := Request{Work: WorkCommand, Program: "upgrade", OtherBoot: true}
	all := Request{
		Work: WorkCommand, Hurried: true, Ended: true, Waived: true, Begun: true, Seen: true, Stopped: true,
		Ran: HooksDone, OtherBoot: true,
	}
	for name, c := range map[string]struct {
		move func(Request) Request
		want func(s *Request)
	}{
		"unhurried":                {Request.Unhurried, func(s *Request) { s.Hurried = false }},
		"it begins":                {Request.Begins, func(s *Request) { s.Begun, s.OtherBoot = true, false }},
		"its operation is in etcd": {Request.Recorded, func(s *Request) { s.Seen = true }},
		"etcd is up":               {Request.EtcdStarted, func(s *Request) { s.Stopped = false }},
		"its operation ends": {
			Request.OperationEnds, func(s *Request) { s.Seen, s.Ended = false, true },
		},
		"its operation ends without result": {Request.GivenUp, func(s *Request) { s.Seen, s.Begun = false, false }},
		"its program has failed": {
			func(s Request) Request { return s.ProgramEnded(HooksFailed) }, func(s *Request) { s.Ran = HooksFailed },
		},
	} {
		for _, s := range []Request{waits, all} {
			want := s
			c.want(&want)
			if got := c.move(s); got != want {
				t.Errorf("%s: %+v becomes %+v, want %+v", name, s, got, want)
			}
		}
	}
	over := Request{Ended: true}
	if s, valid := over.StopsEtcd(); valid || s != over {
		t.Errorf("etcd is stopped for a finished request: %+v", s)
	}
	if s, valid := over.StartsProgram(); valid || s != over {
		t.Errorf("a program is started for a finished request: %+v", s)
	}
	if s, valid := waits.StopsEtcd(); !valid || !s.Stopped || s.Ran != HooksNone {
		t.Errorf("etcd is not stopped for a waiting request: %+v", s)
	}
	ended := Request{Ran: HooksFailed}
	if s, valid := ended.StartsProgram(); !valid || s != ended {
		t.Errorf("a finished program becomes %+v", s)
	}
	if s, valid := waits.StartsProgram(); !valid || s.Ran != HooksRunning || s.Stopped {
		t.Errorf("no program is started for a waiting request: %+v", s)
	}
}

func TestWaivedProgramsStayWaived(t *testing.T) {
	t.Parallel()
	down := Request{By: "alice", Work: WorkMaintenance, Begun: true, Stopped: true}
	over, cancelled, refused := down.Finished(false, false)
	if !over.Ended || over.Waived || cancelled || refused != nil {
		t.Fatalf("got %+v, cancelled %v, refused %v", over, cancelled, refused)
	}
	waived, _, _ := over.Finished(true, false)
	if !waived.Ended || !waived.Waived {
		t.Errorf("an operator waives the programs, and the request is %+v", waived)
	}
	if again, _, _ := waived.Finished(false, false); !again.Waived {
		t.Errorf("a second end revokes the waiver: %+v", again)
	}
}
