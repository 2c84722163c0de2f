// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// wellNetwork returns the network of three hosts that reach each other, as n1 observes it.
func wellNetwork() NetworkReading { return network("") }

// network returns wellNetwork with some paths changed, each given as "n1>n2 lost".
func network(otherwise string) NetworkReading {
	n := NetworkReading{Known: true, Self: "n1"}
	for _, from := range []string{"n1", "n2", "n3"} {
		for _, to := range []string{"n1", "n2", "n3"} {
			way := Path{From: from, To: to, State: PathWell}
			for text := range strings.SplitSeq(otherwise, ",") {
				name, state, _ := strings.Cut(text, " ")
				if name == from+">"+to {
					way.State = map[string]PathState{"lost": PathLost, "large": PathLargeLost}[state]
				}
			}
			if from == n.Self {
				way.Segments = Part{Of: 3, Among: 10_000, Known: true}
			}
			if from != to {
				n.Paths = append(n.Paths, way)
			}
		}
	}
	return n
}

func TestACutConnectionIsFoundAfterAWhileByTheHostsConcerned(t *testing.T) {
	t.Parallel()
	for ways, want := range map[string]string{
		"":                   "",
		"n1>n3 lost":         "NETWORK_ONE_WAY n1 cannot reach n3, but n3 reaches n1",
		"n3>n1 lost":         "NETWORK_ONE_WAY n3 cannot reach n1, but n1 reaches n3",
		"n1>n3 lost,n3>n1 ?": "", // n3 reports nothing, and n1 may be wrong
		"n2>n3 lost":         "", // other hosts report it
		"n2>n3 large":        "",
		"n1>n2 large": "NETWORK_LARGE_PACKETS_LOST " +
			"large packets are lost from n1 to n2; small ones get through",
		"n1>n3 ?,n3>n1 ?":       "",
		"n1>n3 lost,n3>n1 lost": "NETWORK_PARTITION n1 and n3 cannot reach each other, but both reach the cluster",
		"n1>n3 lost,n2>n3 lost,n3>n1 ?,n3>n2 ?": "NETWORK_PARTITION 2 hosts including n1 cannot reach n3, " +
			"but n3 reaches the cluster",
	} {
		b := newBench(t, DefaultThresholds())
		b.member = true
		b.each(10*time.Minute, ms)
		b.network = network(ways)
		b.each(90*time.Second-time.Second, ms)
		if len(b.result.Findings) > 0 {
			t.Errorf("%s: at once: %+v", ways, b.result.Findings)
		}
		b.each(2*time.Second, ms)
		got := ""
		for _, f := range b.result.Findings {
			got += string(f.Code) + " " + f.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ways, got, want)
		}
		if b.result.State != OK {
			t.Errorf("%s: it only advises, got %s", ways, b.result.State)
		}
		b.network = network("")
		if b.each(networkWell+time.Second, ms); len(b.result.Findings) > 0 {
			t.Errorf("%s: after the repair: %+v", ways, b.result.Findings)
		}
	}
}

func TestAHostThatIsDownIsNotCutOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.network = network("n1>n3 lost,n2>n3 lost,n3>n1 ?,n3>n2 ?")
	b.each(75*time.Second, ms) // some probes fail first, and the host record expires within a minute
	b.network.Paths = b.network.Paths[:1]
	b.each(10*time.Minute, ms)
	for _, c := range b.changes {
		if c.Component == Network {
			t.Errorf("got %+v", c)
		}
	}
}

// networkAt returns the network for weather that begins at that time, usually unchanged.
func networkAt(now time.Duration, before NetworkReading) NetworkReading {
	faults := []string{"", "n1>n3 lost", "n1>n3 lost,n3>n1 lost", "n2>n1 large"}
	r := rand.New(rand.NewPCG(uint64(now), 11))
	if r.IntN(4) == 0 {
		return network(faults[r.IntN(len(faults))])
	}
	if r.IntN(4) == 0 {
		before.sends(40, 600)
	}
	return before
}

// networkEdges walks the rules of the checks of the network.
func networkEdges() []edge {
	set := func(ways string, span time.Duration) func(*bench) {
		return func(b *bench) {
			b.network = network(ways)
			b.each(span, quiet)
		}
	}
	var all []edge
	for name, ways := range map[string]string{
		"failing connections from or to this host":                 "n1>n3 lost,n3>n1 lost",
		"one-way connections from or to this host":                 "n1>n3 lost",
		"connections from or to this host that lose large packets": "n1>n3 large",
	} {
		all = append(all,
			edge{
				name + " for",
				func(b *bench) { set("", time.Minute)(b); set(ways, networkBad-time.Second)(b) },
				set(ways, time.Second),
			},
			edge{
				"no " + name,
				func(b *bench) { set(ways, time.Minute)(b); set("", networkWell-time.Second)(b) }, set("", time.Second),
			})
	}
	loses := func(again, among float64, span time.Duration) func(*bench) {
		return func(b *bench) { b.network.sends(again, among); b.each(span, quiet) }
	}
	return append(all,
		edge{
			"over 3 % of the segments to a host",
			func(b *bench) { loses(15, 500, time.Minute)(b); loses(1, 0, time.Minute-time.Second)(b) },
			loses(0, 0, time.Second),
		},
		edge{
			"at most 1.5 % of the segments to any host",
			func(b *bench) { loses(15, 500, time.Minute)(b); loses(0, 500, time.Minute-time.Second)(b) },
			loses(0, 0, time.Second),
		})
}

// sends lets this host send segments to n2, and retransmit some of them.
func (n *NetworkReading) sends(again, among float64) {
	n.Paths = slices.Clone(n.Paths)
	for i := range n.Paths {
		if w := &n.Paths[i]; w.From == n.Self && w.To == "n2" {
			w.Segments.Of, w.Segments.Among = w.Segments.Of+again, w.Segments.Among+among
		}
	}
}

// asks lets this host probe n2 at its idle rate, with this rate of loss, until the loss is found or the time is over.
// It returns how long that took.
func (e *pathLosses) asks(r *rand.Rand, in *Input, lost float64, bound time.Duration) (after time.Duration, seen bool) {
	const every, sent = 10 * time.Second, 5
	sum := &in.Network.Paths[0].Segments
	for ; after < bound && !seen; after += every {
		for range sent {
			if sum.Among++; r.Float64() < lost {
				sum.Among, sum.Of = sum.Among+1, sum.Of+1
			}
		}
		in.Now += every
		seen = len(e.look(*in, false)) > 0
	}
	return after, seen
}

func TestALossOfFivePercentIsFoundWithinHalfAnHourAndOfOnePercentNever(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		e := &pathLosses{limit: Limit{Enter: loss, Leave: lossLeave}, by: map[string]*window{}}
		in := Input{Now: time.Hour, Network: NetworkReading{Known: true, Self: "n1", Paths: []Path{
			{From: "n1", To: "n2", State: PathWell, Segments: Part{Among: 1, Known: true}},
		}}}
		if after, seen := e.asks(r, &in, 0.01, 48*time.Hour); seen {
			t.Errorf("seed %d: 1 %% is found after %s", seed, after)
		}
		after, seen := e.asks(r, &in, 0.05, 2*time.Hour)
		if !seen {
			t.Errorf("seed %d: 5 %% is not found", seed)
		}
		took = append(took, after)
	}
	slices.Sort(took)
	if median, most := took[len(took)/2], took[len(took)-1]; median > 20*time.Minute || most > 30*time.Minute {
		t.Errorf("it took %s, and %s at most", median, most)
	}
}

func TestLossIsNamedAndForgottenWhenItsHostIsNoLongerProbed(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.network.sends(15, 500)
	b.each(2*time.Minute, ms)
	b.network.sends(10, 0)
	b.each(2*time.Minute, ms)
	b.findsOnly(NetworkLossy, "5 % of 500 segments to n2 were retransmitted in the last half hour, limit 3 %")
	b.network.Paths[0].Segments, b.network.Paths[1].Segments = Part{}, Part{} // this host probes other hosts now
	if b.each(2*time.Minute, ms); len(b.result.Findings) > 0 {
		t.Errorf("without probes: %+v", b.result.Findings)
	}
}

func TestPacketLossHidesBehindALinkThatIsDown(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.network.sends(25, 500)
	b.links.Links[2].Carrier = known(0)
	b.each(2*time.Minute, ms)
	b.findsOnly(LinkDown, "eth1 has no link: bond0 runs over eth0 only")
}
