// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"testing"
	"time"

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

func reboot() Wish {
	return Wish{
		Standing: policy.Standing{Work: policy.WorkReboot, Reason: "kernel", By: "root"}, For: time.Hour,
		At: time.Unix(1000, 0),
	}
}

func TestWhatIsWishedAgainIsRenewedAndKeepsItsPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	f := newState(t)
	for i, reason := range []string{"kernel", "firmware"} {
		w := reboot()
		w.Reason, w.For, w.At = reason, time.Duration(i+1)*time.Hour, w.At.Add(time.Duration(i)*time.Minute)
		refused, err := f.Ask(w)
		must(t, err)
		if refused != nil {
			t.Fatalf("%+v stands against it", refused)
		}
	}
	k, _ := f.Asked()
	if !k.Since.Equal(reboot().At) || k.Reason != "firmware" || k.For != 2*time.Hour {
		t.Errorf("what is asked is %+v", k)
	}
}

func TestAWishThatIsRefusedLeavesWhatIsAskedAsItIs(t *testing.T) {
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
		t.Errorf("%+v stands against it, and what is asked is %+v", refused, now)
	}
}

func TestAPersonsWordEndsWhatWaitsAndBringsBackWhatIsDown(t *testing.T) {
	t.Parallel()
	rollout := &record.Rollout{ID: "x"}
	for name, c := range map[string]struct {
		stands       func(*Request)
		word         Word
		over, waived bool
		gone, again  bool
	}{
		"it waits": {stands: func(*Request) {}, gone: true},
		"it waits, of the rollout that runs": {
			stands: func(k *Request) { k.Rollout = "x" },
			word:   Word{Rolling: rollout},
			again:  true,
		},
		"it waits, of another rollout": {
			stands: func(k *Request) { k.Rollout = "y" },
			word:   Word{Rolling: rollout},
			gone:   true,
		},
		"it has begun": {stands: func(k *Request) { k.BootID = "boot" }, over: true},
		"it has begun, of the rollout": {
			stands: func(k *Request) { k.BootID, k.Rollout = "boot", "x" },
			word:   Word{Rolling: rollout},
			over:   true,
		},
		"etcd is stopped": {stands: func(k *Request) { k.Stopped = true }, over: true},
		"the programs after it have failed": {
			stands: func(k *Request) { k.Stopped = true },
			word:   Word{Waives: true},
			over:   true,
			waived: true,
		},
		"they had failed when it was said so": {
			stands: func(k *Request) { k.Stopped, k.Waived = true, true },
			over:   true,
			waived: true,
		},
	} {
		f := newState(t)
		_, err := f.Ask(reboot())
		must(t, err)
		must(t, f.markRequest(c.stands))
		c.word.By, c.word.At = "root", time.Unix(2000, 0)
		refused, err := f.Finish(c.word)
		must(t, err)
		k, end := f.Asked()
		again := refused != nil
		switch {
		case again != c.again || (k == nil) != c.gone:
			t.Errorf("%s: again %t, what is asked is %+v", name, again, k)
		case c.gone && (end == nil || end.Code != policy.Withdrawn || end.Text != "by root"):
			t.Errorf("%s: it ended as %+v", name, end)
		case !c.gone && (k.Ended != c.over || k.Waived != c.waived || end != nil):
			t.Errorf("%s: what is asked is %+v, ended %+v", name, k, end)
		}
	}
	if refused, err := newState(t).Finish(Word{}); refused != nil || err != nil {
		t.Errorf("nothing is asked: %+v, %v", refused, err)
	}
}

func TestAnotherRemovalWaitsUntilTheFirstIsOutOfTimeAndDoesNotRun(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0).UTC()
	first := Removal{MemberID: 1, By: "root", Since: start, Until: start.Add(time.Hour)}
	f := newState(t)
	_, _, err := f.AskRemoval(first, false)
	must(t, err)
	must(t, f.MarkRemoval(&first, true))
	ask := func(member record.MemberID, after time.Duration, runs bool) (Removal, bool) {
		t.Helper()
		k := Removal{MemberID: member, Since: start.Add(after), Until: start.Add(after + time.Hour)}
		stands, refused, err := f.AskRemoval(k, runs)
		must(t, err)
		return stands, refused != nil
	}
	if stands, refused := ask(1, time.Minute, true); refused || !stands.Since.Equal(start) || !stands.Begun ||
		!stands.Until.Equal(start.Add(61*time.Minute)) {
		t.Errorf("asked again it is %+v, refused: %t", stands, refused)
	}
	if _, refused := ask(2, 2*time.Minute, false); !refused {
		t.Error("while the first is in time another one takes its place")
	}
	if _, refused := ask(2, 2*time.Hour, true); !refused {
		t.Error("while the first runs another one takes its place")
	}
	if k, _ := f.Removals(); k == nil || k.MemberID != 1 {
		t.Errorf("what is asked is %+v", k)
	}
	if stands, refused := ask(2, 2*time.Hour, false); refused || stands.MemberID != 2 || stands.Begun {
		t.Errorf("after that it is %+v, refused: %t", stands, refused)
	}
	if k, _ := f.Removals(); k == nil || k.MemberID != 2 {
		t.Errorf("what is asked is %+v", k)
	}
}
