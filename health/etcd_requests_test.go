// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// answering returns requests to a member that answers.
func answering() RequestsReading {
	return RequestsReading{Known: true, Host: "n2", Read: known(0.002), Write: known(0.004)}
}

// unanswered returns requests to a leader that answers none, while the given number of the two other voters serve
// requests.
func unanswered(hung, others int) RequestsReading {
	r := answering()
	r.Hung, r.For, r.Writes, r.Others, r.Needed = hung, 12300*ms, true, others, 2
	return r
}

func requestsOf(b *bench) *check {
	return b.j.checks[slices.IndexFunc(b.j.checks, func(c *check) bool { return c.Name == "etcd-requests" })]
}

// requestsEdges walks the rules of the check of requests to the local member.
func requestsEdges() []edge {
	at := func(r RequestsReading, span time.Duration) func(*bench) {
		return func(b *bench) {
			b.etcd.Requests = r
			b.each(span, quiet)
		}
	}
	absent := RequestsReading{Absent: "the local member has no leader"}
	restart := func(after time.Duration) func(*bench) {
		return func(b *bench) {
			b.etcd.Requests = unanswered(2, 2)
			b.etcd.Process = EtcdProcess{Known: true, Runs: true, Started: requestsOf(b).Since + after}
			b.each(time.Second, quiet)
		}
	}
	return []edge{
		{"etcd was restarted", restart(0), restart(1)},
		{"the requests have given no result", at(absent, requestsSilent-time.Second), at(absent, time.Second)},
		{
			"2 requests in a row hang",
			func(b *bench) { at(unanswered(1, 2), time.Second)(b); at(unanswered(3, 1), time.Second)(b) },
			at(unanswered(2, 2), time.Second),
		},
		{
			"the local member has answered all requests",
			func(b *bench) { at(unanswered(1, 2), time.Second)(b); at(answering(), requestsWell-time.Second)(b) },
			at(answering(), time.Second),
		},
	}
}

func TestAHungMemberIsStalledAndOnlyLosesLeadership(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.etcd.Requests = unanswered(2, 2)
	b.look()
	const want = "n2's etcd has answered no request for 12 s (2 requests in a row, the last one a write); 2 other " +
		"voters serve requests, quorum 2"
	if v := b.result; v.State != Stalled || v.Code != EtcdStalled || v.Text != want || v.Gates != Leadership ||
		v.OnlySlowWrites(Leadership) {
		t.Errorf("got %+v", v)
	}
	if !b.result.OnlyStalledRequests(Leadership) || b.result.Answers {
		t.Errorf("while it hangs: %+v", b.result)
	}
	b.etcd.Requests = answering()
	b.look()
	if v := b.result; v.State != Stalled || !v.Answers || !v.OnlyStalledRequests(Leadership) ||
		!strings.Contains(v.Text, "has answered all requests for ") {
		t.Errorf("once it answers: %+v", v)
	}
	const refused = "etcd refuses a request: no space"
	b.etcd.Requests = RequestsReading{Absent: refused}
	b.look()
	if v := b.result; v.State != Stalled || !strings.HasSuffix(v.Text, refused+", so this may be stale") {
		t.Errorf("without a result: %+v", v)
	}
}

// requestsMistake is a mistake that a judge of requests could make. A judge with it must break the named promise;
// otherwise the test of that promise proves nothing.
type requestsMistake struct {
	name, promise string
	sees          func(r *RequestsReading)
}

// requestsPromises returns what the check promises for every reading, given the state before and after it.
func requestsPromises() map[string]func(now RequestsReading, was, is State) bool {
	begins := func(was, is State) bool { return was != Stalled && is == Stalled }
	return map[string]func(now RequestsReading, was, is State) bool{
		"one hung request stalls no member": func(now RequestsReading, was, is State) bool {
			return !begins(was, is) || now.Hung >= 2
		},
		"no member is judged STALLED unless a quorum of others serves": func(now RequestsReading, was, is State) bool {
			return !begins(was, is) || now.Others >= 2
		},
		"a request that proves nothing stalls no member": func(now RequestsReading, was, is State) bool {
			return !begins(was, is) || now.Known
		},
		"a hung member that the others do not need stalls": func(now RequestsReading, _, is State) bool {
			return !now.Known || now.Hung < 2 || now.Others < 2 || is == Stalled
		},
	}
}

func requestsMistakes() []requestsMistake {
	return []requestsMistake{
		{
			"counts one hung request", "one hung request stalls no member",
			func(r *RequestsReading) { r.Hung *= 2 },
		},
		{
			"ignores that the other voters do not answer",
			"no member is judged STALLED unless a quorum of others serves",
			func(r *RequestsReading) { r.Others = r.Needed },
		},
		{
			"counts its own vote", "no member is judged STALLED unless a quorum of others serves",
			func(r *RequestsReading) { r.Needed-- },
		},
		{
			"counts requests that prove nothing", "a request that proves nothing stalls no member",
			func(r *RequestsReading) { r.Known = true },
		},
		{
			"waits for a third request", "a hung member that the others do not need stalls",
			func(r *RequestsReading) { r.Hung-- },
		},
	}
}

// brokenBy returns the promises that a judge with the given mistake breaks. It explores every sequence of three
// readings.
func brokenBy(t *testing.T, sees func(*RequestsReading)) map[string]bool {
	t.Helper()
	var readings []RequestsReading
	for _, knows := range []bool{true, false} {
		for hung := range 3 {
			for others := range 3 {
				r := unanswered(hung, others)
				if r.Known = knows; hung == 0 {
					r.For, r.Others = 0, 0
				}
				readings = append(readings, r)
			}
		}
	}
	broken := map[string]bool{}
	at := &track{State: OK}
	q := &requests{track: at}
	c := &check{declaration: declareRequests(), evidence: q, track: at, rules: q.transitions()}
	const looks = 3
	var explore func(depth int, now time.Duration)
	explore = func(depth int, now time.Duration) {
		if depth == looks {
			return
		}
		for _, reading := range readings {
			track, evidence := *at, *q
			seen := reading
			if sees != nil {
				sees(&seen)
			}
			was := at.State
			c.read(Input{Now: now, Etcd: EtcdReading{Requests: seen}})
			c.settle(now)
			for promise, holds := range requestsPromises() {
				if !holds(reading, was, at.State) {
					broken[promise] = true
				}
			}
			explore(depth+1, now+30*time.Second)
			*at, *q = track, evidence
		}
	}
	explore(0, time.Hour)
	return broken
}

func TestEveryMistakeAboutRequestsBreaksItsPromise(t *testing.T) {
	t.Parallel()
	if broken := brokenBy(t, nil); len(broken) > 0 {
		t.Errorf("broken without a mistake: %v", broken)
	}
	for _, m := range requestsMistakes() {
		if broken := brokenBy(t, m.sees); !broken[m.promise] {
			t.Errorf("a judge that %s breaks %v, want %q", m.name, broken, m.promise)
		}
	}
}

func TestTheTextNamesTheRequestThatHangs(t *testing.T) {
	t.Parallel()
	r := unanswered(3, 1)
	r.Writes = false
	q := &requests{track: &track{}, seen: r}
	const want = "n2's etcd has answered no request for 12 s (3 requests in a row, the last one a linearizable " +
		"read); 1 other voter serves requests, quorum 2"
	if got := q.text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	q.seen = unanswered(0, 0)
	if got, want := q.text(), "the local member answers requests"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
