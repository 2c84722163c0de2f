// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// NetworkLossy is the code of the check of packet loss between two hosts that reach each other.
const NetworkLossy Code = "NETWORK_LOSSY"

const (
	lossSpan   = 30 * time.Minute
	lossFewest = 500 // segments needed for a rate

	// With a real loss of 1 %, one half hour in a million exceeds the limit by chance. With 5 %, one in four hundred
	// stays below it.
	loss, lossLeave = 3.0, 1.5 // percent
)

// checkLossy is the check of retransmissions among the probes that this host sends to the members of other hosts, and
// on etcd's own connections to its peers. The kernel's count for the whole host is weaker evidence, because most of
// that traffic may never leave the host.
var checkLossy = advice{
	name: "loss", component: Network,
	behind: []string{"partition", "one-way", "large-packets", "link", "link-errors"},
	source: "TCP_INFO (sock_diag) of quorumd's probes of the members' ports, over half an hour, and of etcd's own " +
		"connections to its peers, over five minutes",
	limit: Limit{Of: "retransmitted segments to a host", Unit: "% in half an hour", Enter: loss, Leave: lossLeave},
	code:  NetworkLossy,
	title: "Packets are lost on the path to another host.",
	meaning: "The other host answers, but part of the traffic is lost on the way there or back. Everything behind a " +
		"lost packet waits at least a fifth of a second, and a new connection a full second: heartbeats arrive late.",
	remedy: "compare this path with the paths to and between the other hosts; check 'ip -s link' on both hosts, then " +
		"the cables and the switch between them",
	measure: func(a advice, at *track) evidence {
		e := &pathLosses{limit: a.limit, by: map[string]*window{}, peers: peerLosses{limit: a.limit}}
		return lists(time.Minute, time.Minute, listed{
			bad:     fmt.Sprintf("over %.10g %% of the segments to a host are retransmitted", a.limit.Enter),
			well:    fmt.Sprintf("at most %.10g %% of the segments to any host are retransmitted", a.limit.Leave),
			look:    e.look,
			missing: func(in Input) string { return in.Network.absent() },
			partly: func(in Input) []string {
				if peers := in.Links.Peers; !peers.Known && peers.Absent != "" {
					return []string{"etcd's own connections: " + peers.Absent}
				}
				return nil
			},
		})(a, at)
	},
}

// pathLosses keeps the recent counts of the path to each host.
type pathLosses struct {
	limit Limit
	by    map[string]*window
	peers peerLosses
}

func (e *pathLosses) look(in Input, bad bool) (all []string) {
	own := slices.DeleteFunc(slices.Clone(in.Network.Paths), func(w Path) bool { return w.From != in.Network.Self })
	maps.DeleteFunc(e.by, func(to string, _ *window) bool {
		return !slices.ContainsFunc(own, func(w Path) bool { return w.To == to })
	})
	for _, w := range own {
		if e.by[w.To] == nil {
			e.by[w.To] = &window{span: lossSpan}
		}
		counted := e.by[w.To]
		counted.take(in.Now, w.Segments)
		if share := counted.share(lossFewest); e.limit.beyond(share, bad) {
			_, sent := counted.grown()
			all = append(all, fmt.Sprintf("%.2g %% of %.0f segments to %s were retransmitted in the last half hour, "+
				"limit %.10g %%", share, sent, w.To, e.limit.Enter))
		}
	}
	return append(all, e.peers.look(in.Links.Peers, bad)...)
}
