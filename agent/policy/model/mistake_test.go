// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
)

func TestEveryMistakeBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for _, m := range Mistakes() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			r := explore(t.Context(), m.Scenario(), m.rules, 1)
			switch p := promises()[m.breach]; {
			case r.Breach == nil:
				t.Fatalf("%d states explored, complete: %t, no breach; want %s: %s", r.States, r.Complete,
					p.name, p.text)
			case r.Breach.Text != p.text:
				t.Fatalf("found %s: %s; want %s: %s\n%s", r.Breach.Promise, r.Breach.Text, p.name, p.text,
					r.Breach.Trace)
			}
			if m.breach >= targetMissed && !strings.Contains(r.Breach.Trace, "No fault occurs from here on.") {
				t.Errorf("the trace has no liveness run:\n%s", r.Breach.Trace)
			}
			t.Logf("%s after %d states, depth %d, %v", r.Breach.Promise, r.States, r.Depth, r.Took)
		})
	}
}

func TestEveryPromiseIsBrokenByAMistake(t *testing.T) {
	t.Parallel()
	broken := map[breach]bool{}
	for _, m := range Mistakes() {
		broken[m.breach] = true
	}
	for b, p := range promises() {
		if !broken[b] {
			t.Errorf("no mistake breaks %s, %q: add one to show that it can fail", p.name, p.text)
		}
	}
}

func TestATraceNamesActorsActionsAndViews(t *testing.T) {
	t.Parallel()
	for _, m := range Mistakes() {
		if m.Name != "the lock's validity counts from the receipt of the answer" {
			continue
		}
		trace := m.Explore(t.Context()).Breach.Trace
		at := 0
		for _, want := range []string{
			"initially   A=voter:up  B=spare  C=spare",
			"C observes (A voter live; lock free) and decides: take-lock",
			"C begins: take-lock", "C=spare,has-lock  lock=C", "fault: C's agent is stopped (SIGSTOP)",
			"the lease of C's lock ends at the server",
		} {
			i := strings.Index(trace[at:], want)
			if i < 0 {
				t.Fatalf("%q is missing or out of order in\n%s", want, trace)
			}
			at += i
		}
		return
	}
	t.Fatal("the mistake is not in the table")
}
