// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// someLinks returns random readings of the interfaces.
func someLinks(chance func(percent int) bool) LinkReading {
	r := wellLinks()
	for i := range r.Links {
		l := &r.Links[i]
		l.Packets.Value, l.Errors.Value, l.Lost.Value, l.Changes.Value = 50_000, 0, 1, 0
	}
	eth1 := &r.Links[2]
	if chance(30) {
		eth1.Carrier.Value = 0
	}
	eth1.Apart = chance(10)
	if chance(30) {
		eth1.Speed.Value = 1000
	}
	if chance(10) {
		eth1.Changes.Value, eth1.Errors.Value = 4, 500
	}
	if chance(10) {
		eth1.Packets, eth1.Speed = Figure{}, Figure{Absent: "the driver reports no speed"}
	}
	if chance(5) {
		r = LinkReading{Absent: "no interface has it"}
	}
	return r
}

// grown adds the previous counts to the increments.
func (r LinkReading) grown(was LinkReading) LinkReading {
	for i := range r.Links {
		k := slices.IndexFunc(was.Links, func(o Link) bool { return o.Name == r.Links[i].Name })
		if k < 0 {
			continue
		}
		l, o := &r.Links[i], was.Links[k]
		l.Packets.Value += o.Packets.Value
		l.Errors.Value += o.Errors.Value
		l.Lost.Value += o.Lost.Value
		l.Changes.Value += o.Changes.Value
	}
	return r
}

// linkEdges walks the rules of the checks of interfaces.
func linkEdges() []edge {
	const minute, second = time.Minute, time.Second
	set := func(f func(eth1 *Link), span time.Duration) func(*bench) {
		return func(b *bench) {
			b.links.Links = slices.Clone(b.links.Links)
			f(&b.links.Links[2])
			b.each(span, quiet)
		}
	}
	then := func(first, second func(*bench)) func(*bench) { return func(b *bench) { first(b); second(b) } }
	nothing, now := func(*Link) {}, func(b *bench) { b.each(second, quiet) }
	down := func(l *Link) { l.Carrier = known(0) }
	up := func(l *Link) { l.Carrier = known(1) }
	slow := func(l *Link) { l.Speed = known(1000) }
	fast := func(l *Link) { l.Speed = known(10_000) }
	flap := func(n float64) func(*Link) { return func(l *Link) { l.Changes.Value += n } }
	lost := func(n, packets float64) func(*Link) {
		return func(l *Link) { l.Lost.Value += n; l.Packets.Value += packets }
	}
	return []edge{
		{"an interface has no link", then(set(nothing, minute), set(down, minute-second)), now},
		{"every interface has a link", then(set(down, minute), set(up, minute-second)), now},
		{"an interface is slower than before", then(set(nothing, minute), set(slow, minute-second)), now},
		{"every interface is as fast as before", then(set(slow, minute), set(fast, minute-second)), now},
		{"link changes over 2", set(flap(2), minute), set(flap(1), second)},
		{"link changes at most 0", then(set(flap(1), second), set(nothing, 10*minute-second)), now},
		{
			"over 0.1 % of an interface's packets",
			then(set(lost(10, 10_000), minute), set(lost(1, 0), minute-second)), now,
		},
		{
			"at most 0.02 % of any interface's packets",
			then(set(lost(3, 10_000), second), set(lost(0, 5000), 10*minute-second)), now,
		},
	}
}

// linked returns a bench of a healthy member that has run for a while.
func linked(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(6*time.Minute, ms)
	return b
}

// findsOnly fails unless there is exactly one finding, with this code and text, and the health state is OK.
func (b *bench) findsOnly(code Code, text string) {
	b.t.Helper()
	if f := b.result.Findings; len(f) != 1 || f[0].Code != code || f[0].Text != text {
		b.t.Errorf("the findings are %+v, want %s: %s", f, code, text)
	}
	if b.result.State != OK {
		b.t.Errorf("got %s: %s", b.result.State, b.result.Text)
	}
}

func TestAPortWithoutALinkIsNamedInsteadOfItsBond(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.links.Links[2].Carrier = known(0)
	b.each(2*time.Minute, ms)
	b.findsOnly(LinkDown, "eth1 has no link: bond0 runs over eth0 only")
	for i := range b.links.Links {
		b.links.Links[i].Carrier = known(0)
	}
	b.each(time.Second, ms)
	b.findsOnly(LinkDown, "eth0 has no link; eth1 has no link")
}

func TestAPortInAnotherAggregationGroupIsNamed(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.links.Links[1].Apart = true
	b.each(2*time.Minute, ms)
	b.findsOnly(LinkDown, "eth0 is not in the aggregation group of its bond (LACP)")
}

func TestASpeedIsComparedWithTheBestSinceTheBootAcrossARestart(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.reborn()
	b.links.Links[1].Speed = known(1000)
	b.each(2*time.Minute, ms)
	b.findsOnly(LinkSlow, "eth0 runs at 1000 Mbit/s, but ran at 10000 Mbit/s before")
	b.links.Links[1].Speed = known(10_000)
	b.links.Links[1].Half = true
	b.each(time.Second, ms)
	b.findsOnly(LinkSlow, "eth0 runs in half duplex")
}

func TestAnInvalidSpeedIsRefused(t *testing.T) {
	t.Parallel()
	for _, memory := range []string{`{"eth0":-1}`, `{"eth0":0}`, `{"eth0":"fast"}`, `[]`, `{"eth0":1} {}`} {
		e := &linkSpeed{best: map[string]float64{}}
		if err := e.recall([]byte(memory), 0, 0); err == nil || len(e.best) > 0 {
			t.Errorf("%s is accepted: %v", memory, e.best)
		}
	}
}

func TestAnUnknownSpeedIsNeitherSlowNorFast(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	for i := range b.links.Links {
		b.links.Links[i].Speed = Figure{Absent: "the driver reports no speed"}
	}
	b.each(400*time.Second, ms)
	n := slices.IndexFunc(b.result.NotAvailable, func(a Absence) bool { return a.Check == "link-speed" })
	if len(b.result.Findings) > 0 || n < 0 || b.result.NotAvailable[n].Why != "the driver reports no speed" {
		t.Errorf("got %+v", b.result)
	}
}

func TestTwoFlapsInTenMinutesAreFoundAndOneIsNot(t *testing.T) {
	t.Parallel()
	b := linked(t)
	for range 3 {
		b.links.Links[1].Changes.Value += 2
		b.each(11*time.Minute, ms)
	}
	if len(b.result.Findings) > 0 || len(b.changes) > 3 {
		t.Errorf("the findings are %+v after %+v", b.result.Findings, b.changes)
	}
	b.links.Links[1].Changes.Value += 2
	b.each(time.Minute, ms)
	b.links.Links[2].Changes.Value += 2
	b.each(time.Second, ms)
	b.findsOnly(LinkFlapping, "4 link changes in the last ten minutes, limit 2")
}

func TestAddingOrRemovingAPortOfABondIsNoFlap(t *testing.T) {
	t.Parallel()
	b := linked(t)
	whole := b.links.Links
	b.links.Links = whole[:2]
	b.each(time.Minute, ms)
	b.links.Links = whole
	b.each(time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
}

func TestCorruptedPacketsAreFoundPerInterfaceAndCountersMayRestart(t *testing.T) {
	t.Parallel()
	b := linked(t)
	eth0, eth1 := &b.links.Links[1], &b.links.Links[2]
	lives := func(seconds int, broken float64) {
		for range seconds {
			eth0.Packets.Value += 1000
			eth1.Packets.Value += 1000
			eth1.Errors.Value += broken
			b.each(time.Second, ms)
		}
	}
	lives(600, 0)
	lives(30, 500)
	if len(b.result.Findings) > 0 {
		t.Errorf("too early: %+v", b.result.Findings)
	}
	lives(90, 500)
	if f := b.result.Findings; len(f) != 1 || f[0].Code != LinkErrors ||
		!strings.Contains(f[0].Text, "of the packets of eth1 were corrupted in the last ten minutes, limit 0.1 %") {
		t.Errorf("the findings are %+v", f)
	}
	eth1.Packets, eth1.Errors = known(0), known(0) // the driver was reloaded
	lives(1300, 0)
	if len(b.result.Findings) > 0 {
		t.Errorf("after the cable was replaced: %+v", b.result.Findings)
	}
}

func TestUnknownLinksHaveAReason(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member, b.links = true, LinkReading{Absent: "no interface has it"}
	b.each(400*time.Second, ms)
	n := 0
	for _, a := range b.result.NotAvailable {
		if strings.HasPrefix(a.Check, "link") && a.Why == "no interface has it" {
			n++
		}
	}
	if n != 4 || len(b.result.Findings) > 0 {
		t.Errorf("%d checks of links are not available, found %+v", n, b.result.Findings)
	}
}

func TestAWindowCoversItsSpanWithABoundedNumberOfReadings(t *testing.T) {
	t.Parallel()
	w := window{span: 5 * time.Minute}
	for at := range 3600 {
		n := float64(at)
		w.take(time.Duration(at)*time.Second, Part{Of: n, Among: 100 * n, Known: true})
		if len(w.all) > windowKept {
			t.Fatalf("it keeps %d readings", len(w.all))
		}
	}
	if of, among := w.grown(); of < 300 || of > 306 || among != 100*of {
		t.Errorf("growth over five minutes: %v of %v", of, among)
	}
	if w.take(time.Hour, Part{}); w.share(1) != 0 {
		t.Errorf("an unknown value is still counted: %v", w.share(1))
	}
}
