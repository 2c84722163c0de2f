// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func newState(t *testing.T) *State {
	t.Helper()
	dir := t.TempDir()
	f, err := Open(HostFiles{}, dir+"/state", dir+"/run", nil)
	must(t, err)
	return f
}

func reboot() Request {
	return Request{
		Request: policy.Request{Work: policy.WorkReboot, Reason: "kernel", By: "root"}, For: time.Hour,
		Since: time.Unix(1000, 0),
	}
}

func TestARenewedRequestKeepsItsPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	f := newState(t)
	for i, reason := range []string{"kernel", "firmware"} {
		w := reboot()
		w.Reason, w.For, w.Since = reason, time.Duration(i+1)*time.Hour, w.Since.Add(time.Duration(i)*time.Minute)
		refused, err := f.Ask(w)
		must(t, err)
		if refused != nil {
			t.Fatalf("renewal refused: %+v", refused)
		}
	}
	k, _ := f.Asked()
	if !k.Since.Equal(reboot().Since) || k.Reason != "firmware" || k.For != 2*time.Hour {
		t.Errorf("the request is %+v", k)
	}
}

func TestARefusedRequestLeavesThePendingOneUnchanged(t *testing.T) {
	t.Parallel()
	f := newState(t)
	_, err := f.Ask(reboot())
	must(t, err)
	before, _ := f.Asked()
	w := reboot()
	w.Work, w.Reason, w.For = policy.WorkRestart, "another", time.Minute
	refused, err := f.Ask(w)
	must(t, err)
	if now, _ := f.Asked(); refused == nil || *now != *before {
		t.Errorf("refused: %+v; the request is %+v, want %+v", refused, now, before)
	}
}

func TestFinishCancelsAQueuedRequestAndEndsABegunOne(t *testing.T) {
	t.Parallel()
	rollout := &record.Rollout{ID: "x"}
	for name, c := range map[string]struct {
		change       func(*Request)
		done         Completion
		over, waived bool
		gone, again  bool
	}{
		"it waits": {change: func(*Request) {}, gone: true},
		"it waits, and the running rollout made it": {
			change: func(k *Request) { k.Rollout = "x" },
			done:   Completion{Rolling: rollout},
			again:  true,
		},
		"it waits, and a different rollout made it": {
			change: func(k *Request) { k.Rollout = "y" },
			done:   Completion{Rolling: rollout},
			gone:   true,
		},
		"it has begun": {change: func(k *Request) { k.BootID = "boot" }, over: true},
		"it has begun for the rollout": {
			change: func(k *Request) { k.BootID, k.Rollout = "boot", "x" },
			done:   Completion{Rolling: rollout},
			over:   true,
		},
		"etcd is stopped": {change: func(k *Request) { k.Stopped = true }, over: true},
		"the after.d hooks have failed": {
			change: func(k *Request) { k.Stopped = true },
			done:   Completion{Waives: true},
			over:   true,
			waived: true,
		},
		"the hooks had failed at an earlier call": {
			change: func(k *Request) { k.Stopped, k.Waived = true, true },
			over:   true,
			waived: true,
		},
	} {
		f := newState(t)
		_, err := f.Ask(reboot())
		must(t, err)
		must(t, f.markRequest(c.change))
		c.done.By, c.done.At = "root", time.Unix(2000, 0)
		refused, err := f.Finish(c.done)
		must(t, err)
		k, end := f.Asked()
		again := refused != nil
		switch {
		case again != c.again || (k == nil) != c.gone:
			t.Errorf("%s: refused %t, the request is %+v", name, again, k)
		case c.gone && (end == nil || end.Code != policy.Cancelled || end.Text != "by root"):
			t.Errorf("%s: it ended as %+v", name, end)
		case !c.gone && (k.Ended != c.over || k.Waived != c.waived || end != nil):
			t.Errorf("%s: the request is %+v, the last ended as %+v", name, k, end)
		}
	}
	if refused, err := newState(t).Finish(Completion{}); refused != nil || err != nil {
		t.Errorf("no request: %+v, %v", refused, err)
	}
}

func TestAnotherRemovalIsRefusedUntilTheFirstHasExpiredAndDoesNotRun(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0).UTC()
	f := newState(t)
	first, _, err := f.AskRemoval(control.RequestedRemoval{
		MemberID: 1, By: "root", Since: start, Until: start.Add(time.Hour),
	}, "", false)
	must(t, err)
	must(t, f.MarkRemoval(&first, true))
	ask := func(member record.MemberID, after time.Duration, runs bool) (Removal, bool) {
		t.Helper()
		k := control.RequestedRemoval{MemberID: member, Since: start.Add(after), Until: start.Add(after + time.Hour)}
		result, refused, err := f.AskRemoval(k, "", runs)
		must(t, err)
		return result, refused != nil
	}
	if got, refused := ask(1, time.Minute, true); refused || !got.Since.Equal(start) || !got.Begun ||
		!got.Until.Equal(start.Add(61*time.Minute)) {
		t.Errorf("renewed, the removal is %+v, refused: %t", got, refused)
	}
	if _, refused := ask(2, 2*time.Minute, false); !refused {
		t.Error("another removal replaces the first before that expires")
	}
	if _, refused := ask(2, 2*time.Hour, true); !refused {
		t.Error("another removal replaces the first while that runs")
	}
	if k, _ := f.Removals(); k == nil || k.MemberID != 1 {
		t.Errorf("the request is %+v", k)
	}
	if got, refused := ask(2, 2*time.Hour, false); refused || got.MemberID != 2 || got.Begun {
		t.Errorf("after the first has expired the removal is %+v, refused: %t", got, refused)
	}
	if k, _ := f.Removals(); k == nil || k.MemberID != 2 {
		t.Errorf("the request is %+v", k)
	}
}
