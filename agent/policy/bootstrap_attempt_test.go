// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func bootstrapView() View {
	v := spareView()
	v.Cluster, v.Clock, v.Hosts, v.Lock = Cluster{Error: "refused"}, Clock{}, nil, Lock{}
	v.BootstrapAttempt = BootstrapAttempt{
		List:         "L",
		First:        v.Self.Name,
		PromisedList: "L",
		Attempt:      "1",
		Others: []BootstrapAnswer{
			{Name: "y", List: "L", PromisedList: "L", Attempt: "1"},
			{Name: "z", List: "L", PromisedList: "L", Attempt: "1"},
		},
	}
	return v
}

func TestTheFirstHostBootstrapsOnlyWithoutObjections(t *testing.T) {
	t.Parallel()
	if n := Decide(bootstrapView()).Notes.BootstrapAttempt; !n.Start {
		t.Fatalf("all hosts agree, and the first host records %+v", n)
	}
	for says, change := range map[string]func(v *View){
		"z does not answer: cut off":            func(v *View) { v.BootstrapAttempt.Others[1].Silent = "cut off" },
		"z is not new: there is data":           func(v *View) { v.BootstrapAttempt.Others[1].Past = "there is data" },
		"z has a different cluster.name":        func(v *View) { v.BootstrapAttempt.Others[1].List = "M" },
		"z has not committed":                   func(v *View) { v.BootstrapAttempt.Others[1].Attempt = "" },
		"z is committed to an earlier":          func(v *View) { v.BootstrapAttempt.Others[1].Attempt = "0" },
		"this host is committed to a different": func(v *View) { v.BootstrapAttempt.PromisedList = "M" },
		"when all others agree":                 func(v *View) { v.BootstrapAttempt.Others = nil },
		"y does not answer: off; z is": func(v *View) {
			v.BootstrapAttempt.Others[0].Silent, v.BootstrapAttempt.Others[1].Past = "off", "data"
		},
	} {
		v := bootstrapView()
		change(&v)
		d := Decide(v)
		if d.Notes.BootstrapAttempt != (BootstrapNote{}) || d.Step.Kind != StepNone || len(d.Reasons) == 0 ||
			d.Reasons[0].Code != BootstrapWaiting || !strings.Contains(d.Reasons[0].Text, says) {
			t.Errorf("%s: records %+v, reasons %+v", says, d.Notes.BootstrapAttempt, d.Reasons)
		}
	}
}

func TestAUsedHostNeitherBootstrapsNorPromises(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(v *View){
		"belonged": func(v *View) { v.Bootstrap.Done = true }, "seen": func(v *View) { v.Bootstrap.LastCluster = 7 },
		"data": func(v *View) { v.Data.State = DataMember }, "unknown": func(v *View) { v.Data.State = DataUnknown },
		"answers": func(v *View) { v.Cluster.Listed = true }, "denied": func(v *View) { v.Cluster.Denied = true },
		"unit": func(v *View) { v.Unit.State = UnitActive }, "observes": func(v *View) { v.Self.Mode = Observe },
	} {
		for _, first := range []string{bootstrapView().Self.Name, "y"} {
			v := bootstrapView()
			v.BootstrapAttempt.First = first
			if first == "y" {
				v.BootstrapAttempt.Attempt, v.BootstrapAttempt.PromisedList = "", ""
			}
			change(&v)
			if n := Decide(v).Notes.BootstrapAttempt; n != (BootstrapNote{}) || BootstrapAnswerOf(v).Past == "" {
				t.Errorf("%s: records %+v and answers %+v", name, n, BootstrapAnswerOf(v))
			}
		}
	}
}

func TestAHostPromisesOneAttemptForever(t *testing.T) {
	t.Parallel()
	v := bootstrapView()
	v.BootstrapAttempt.First, v.BootstrapAttempt.Attempt, v.BootstrapAttempt.PromisedList = "y", "", ""
	if n := Decide(v).Notes.BootstrapAttempt; n != (BootstrapNote{Promise: "1"}) {
		t.Fatalf("it records %+v", n)
	}
	v.BootstrapAttempt.Attempt, v.BootstrapAttempt.PromisedList = "0", "L"
	d := Decide(v)
	if d.Notes.BootstrapAttempt != (BootstrapNote{}) || !strings.Contains(d.Reasons[0].Text, "its earlier one") {
		t.Errorf("with another attempt it records %+v: %+v", d.Notes.BootstrapAttempt, d.Reasons)
	}
}

func TestTheFirstHostBeginsAnAttemptBeforeTheOthersCommitToIt(t *testing.T) {
	t.Parallel()
	v := bootstrapView()
	v.BootstrapAttempt.Attempt, v.BootstrapAttempt.PromisedList = "", ""
	for i := range v.BootstrapAttempt.Others {
		v.BootstrapAttempt.Others[i].Attempt, v.BootstrapAttempt.Others[i].PromisedList = "", ""
	}
	d := Decide(v)
	if d.Notes.BootstrapAttempt != (BootstrapNote{Begin: true}) ||
		!strings.Contains(d.Reasons[0].Text, "this host begins an attempt to create the cluster") {
		t.Errorf("it records %+v: %+v", d.Notes.BootstrapAttempt, d.Reasons)
	}
}

func TestAHostWithoutAClusterAnswersWithItsListAndItsAttempt(t *testing.T) {
	t.Parallel()
	v := bootstrapView()
	v.BootstrapAttempt.PromisedList = "M"
	want := BootstrapAnswer{Name: "n3", List: "L", PromisedList: "M", Attempt: "1", Phase: bootstrapPhase(v)}
	if got := BootstrapAnswerOf(v); got != want {
		t.Errorf("it answers %+v", got)
	}
}

func TestAHostFollowsTheFirstListedHostAndNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(b *BootstrapAttempt)
		note   BootstrapNote
		says   string
	}{
		"the first host is not the first to answer": {
			func(b *BootstrapAttempt) { b.First, b.Others[0].Attempt = "z", "" },
			BootstrapNote{Promise: "1"},
			"z creates the cluster; this host is committed to it",
		},
		"another host is committed to an earlier attempt": {
			func(b *BootstrapAttempt) { b.Others[1].Attempt = "0" },
			BootstrapNote{Promise: "1"},
			"y creates the cluster",
		},
		"the first host has not begun": {
			func(b *BootstrapAttempt) { b.Others[0].Attempt = "" }, BootstrapNote{}, "y has not begun",
		},
		"the first host is committed to a different list": {
			func(b *BootstrapAttempt) { b.Others[0].PromisedList = "M" }, BootstrapNote{}, "y has not begun",
		},
		"the first host does not answer": {
			func(b *BootstrapAttempt) { b.Others[0].Silent = "cut off" },
			BootstrapNote{},
			"this host has not committed to it yet: y does not answer: cut off",
		},
		"the first host was not asked": {
			func(b *BootstrapAttempt) { b.Others = b.Others[1:] }, BootstrapNote{}, "y creates the cluster when all",
		},
		"this host is committed, and the first one does not answer": {
			func(b *BootstrapAttempt) {
				b.Attempt, b.PromisedList, b.Others[0].Silent, b.Others[0].Attempt = "1", "L", "cut off", ""
			}, BootstrapNote{}, "y creates the cluster when all listed hosts agree; this host is committed to it",
		},
		"this host is committed to the attempt": {
			func(b *BootstrapAttempt) { b.Attempt, b.PromisedList = "1", "L" },
			BootstrapNote{},
			"y creates the cluster when all listed hosts agree; this host is committed to it",
		},
	} {
		v := bootstrapView()
		v.BootstrapAttempt.First, v.BootstrapAttempt.Attempt, v.BootstrapAttempt.PromisedList = "y", "", ""
		c.change(&v.BootstrapAttempt)
		if note, text := advanceAttempt(v); note != c.note || !strings.Contains(text, c.says) {
			t.Errorf("%s: it records %+v: %s", name, note, text)
		}
	}
}

// requestedView returns the view of n3, which has published its request to bootstrap a cluster. Its name sorts between
// n2 and n4.
func requestedView() View {
	v := bootstrapView()
	v.Bootstrap.Requested = true
	v.BootstrapAttempt = BootstrapAttempt{List: "L", First: "n2", OnRequest: true, Others: []BootstrapAnswer{
		{Name: "n2", List: "L", Asked: BootstrapAsking}, {Name: "n4", List: "L", Asked: BootstrapAsking},
	}}
	return v
}

func TestABootstrapRequestNeedsOtherListedHostsWithoutClusterOrRequest(t *testing.T) {
	t.Parallel()
	v := requestedView()
	if d := Decide(v); !d.Notes.BootstrapAttempt.Decide || d.Step.Kind != StepNone {
		t.Fatalf("no other host has a request: records %+v, step %s", d.Notes.BootstrapAttempt, d.Step.Kind)
	}
	v.Bootstrap.Decided = true
	if d := Decide(v); d.Notes.BootstrapAttempt.Decide || d.Step.Kind != StepWriteEnv {
		t.Fatalf("the decision is recorded: records %+v, step %s", d.Notes.BootstrapAttempt, d.Step.Kind)
	}
	for says, change := range map[string]func(first, last *BootstrapAnswer){
		"n2 has not been asked since": func(first, _ *BootstrapAnswer) { first.Asked = BootstrapNone },
		"n4 does not answer: off":     func(_, last *BootstrapAnswer) { last.Silent = "off" },
		"n4 has a different cluster.name": func(_, last *BootstrapAnswer) {
			last.List, last.Phase = "M", BootstrapDecided
		},
		"n4 is not new: it only":         func(_, last *BootstrapAnswer) { last.Past = "it only observes" },
		"its phase later is unknown":     func(_, last *BootstrapAnswer) { last.Phase = "later" },
		"to another attempt: a cluster":  func(_, last *BootstrapAnswer) { last.Attempt = "2" },
		"requested on n4 too":            func(_, last *BootstrapAnswer) { last.Phase = BootstrapAsking },
		"n2 does not answer: off; n4 do": func(a, b *BootstrapAnswer) { a.Silent, b.Silent = "off", "off" },
	} {
		v := requestedView()
		change(&v.BootstrapAttempt.Others[0], &v.BootstrapAttempt.Others[1])
		d := Decide(v)
		if d.Notes.BootstrapAttempt != (BootstrapNote{}) || d.Step.Kind != StepNone || len(d.Reasons) == 0 ||
			d.Reasons[0].Code != BootstrapWaiting || !strings.Contains(d.Reasons[0].Text, says) {
			t.Errorf("%s: records %+v, step %s, reasons %+v", says, d.Notes.BootstrapAttempt, d.Step.Kind, d.Reasons)
		}
	}
}

func TestABootstrapRequestEndsWhenAnotherListedHostHasTheClusterOrTheFirstRequest(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(v *View){
		"requested on n2": func(v *View) { v.BootstrapAttempt.Others[0].Phase = BootstrapAsking },
		"n4 creates the":  func(v *View) { v.BootstrapAttempt.Others[1].Phase = BootstrapDecided },
		"n4 is not new: d": func(v *View) {
			v.BootstrapAttempt.Others[1].Phase, v.BootstrapAttempt.Others[1].Past = BootstrapCluster, "data"
		},
	} {
		v := requestedView()
		change(&v)
		d := Decide(v)
		if s := d.Step; s.Kind != StepFinishBootstrap || s.Outcome != ClusterExists || !strings.Contains(s.Why, says) {
			t.Errorf("%s: step %+v", says, s)
		}
		if d.Notes.BootstrapAttempt.Decide {
			t.Errorf("%s: it decides", says)
		}
		v.Bootstrap.Requested = false
		d = Decide(v)
		if len(d.Reasons) == 0 || d.Reasons[0].Code != BootstrapWaiting || !strings.Contains(d.Reasons[0].Text, says) {
			t.Errorf("%s: after the request it answers %+v", says, d.Reasons)
		}
		if r := AgainstBootstrap(v, "/data", "/met"); r == nil || r.Code != ClusterExists ||
			!strings.Contains(r.Text, says) {
			t.Errorf("%s: another request is answered with %+v", says, r)
		}
	}
}
