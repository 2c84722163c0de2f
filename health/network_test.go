// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// wellNetwork is that of three hosts that reach each other, as n1 knows it.
func wellNetwork() NetworkReading { return network("") }

// network gives the same with some ways otherwise, each as "n1>n2 lost".
func network(otherwise string) NetworkReading {
	n := NetworkReading{Known: true, Self: "n1"}
	for _, from := range []string{"n1", "n2", "n3"} {
		for _, to := range []string{"n1", "n2", "n3"} {
			way := Way{From: from, To: to, State: WayWell}
			for text := range strings.SplitSeq(otherwise, ",") {
				name, state, _ := strings.Cut(text, " ")
				if name == from+">"+to {
					way.State = map[string]WayState{"lost": WayLost, "large": WayLargeLost}[state]
				}
			}
			if from != to {
				n.Ways = append(n.Ways, way)
			}
		}
	}
	return n
}

func TestAWayThatIsCutIsNamedByWhoItConcernsAndAfterAWhileOnly(t *testing.T) {
	t.Parallel()
	for ways, want := range map[string]string{
		"":                   "",
		"n1>n3 lost":         "NETWORK_ONE_WAY n1 does not reach n3, and n3 reaches n1",
		"n3>n1 lost":         "NETWORK_ONE_WAY n3 does not reach n1, and n1 reaches n3",
		"n1>n3 lost,n3>n1 ?": "", // n3 says nothing, and n1 may be wrong
		"n2>n3 lost":         "", // it concerns others
		"n2>n3 large":        "",
		"n1>n2 large": "NETWORK_LARGE_PACKETS_LOST " +
			"from n1 to n2 small packets get through and large ones do not",
		"n1>n3 ?,n3>n1 ?":       "",
		"n1>n3 lost,n3>n1 lost": "NETWORK_PARTITION n1 and n3 do not reach each other, and both reach the cluster",
		"n1>n3 lost,n2>n3 lost,n3>n1 ?,n3>n2 ?": "NETWORK_PARTITION 2 hosts do not reach n3, n1 among them, " +
			"and it reaches the cluster",
	} {
		b := newBench(t, DefaultThresholds())
		b.member = true
		b.each(10*time.Minute, ms)
		b.network = network(ways)
		b.each(90*time.Second-time.Second, ms)
		if len(b.verdict.Findings) > 0 {
			t.Errorf("%s: at once it is %+v", ways, b.verdict.Findings)
		}
		b.each(2*time.Second, ms)
		got := ""
		for _, f := range b.verdict.Findings {
			got += string(f.Code) + " " + f.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ways, got, want)
		}
		if b.verdict.State != OK {
			t.Errorf("%s: it advises only, and the verdict is %s", ways, b.verdict.State)
		}
		b.network = network("")
		if b.each(networkWell+time.Second, ms); len(b.verdict.Findings) > 0 {
			t.Errorf("%s: after it was mended: %+v", ways, b.verdict.Findings)
		}
	}
}

func TestAHostThatHasGoneIsNotCutOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.network = network("n1>n3 lost,n2>n3 lost,n3>n1 ?,n3>n2 ?")
	b.each(75*time.Second, ms) // found dead after some looks, and its record stays for a minute at most
	b.network.Ways = b.network.Ways[:1]
	b.each(10*time.Minute, ms)
	for _, c := range b.changes {
		if c.Component == Network {
			t.Errorf("it was %+v", c)
		}
	}
}

// networkAt is the network in a weather that begins at that moment: mostly that of before.
func networkAt(now time.Duration, before NetworkReading) NetworkReading {
	faults := []string{"", "n1>n3 lost", "n1>n3 lost,n3>n1 lost", "n2>n1 large"}
	if r := rand.New(rand.NewPCG(uint64(now), 11)); r.IntN(4) == 0 {
		return network(faults[r.IntN(len(faults))])
	}
	return before
}

// networkEdges walks the checks of the network.
func networkEdges() []edge {
	set := func(ways string, span time.Duration) func(*bench) {
		return func(b *bench) {
			b.network = network(ways)
			b.each(span, quiet)
		}
	}
	var all []edge
	for name, ways := range map[string]string{
		"hosts cut off": "n1>n3 lost,n3>n1 lost", "ways in one direction only": "n1>n3 lost",
		"ways that lose large packets": "n1>n3 large",
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
	return all
}
