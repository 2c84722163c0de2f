// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// Retransmissions is the code of the check of TCP retransmissions.
const Retransmissions Code = "RETRANSMISSIONS"

const (
	resentSpan   = 5 * time.Minute
	resentFewest = 1000 // segments

	resent, resentLeave = 1.0, 0.5 // percent
)

// checkRetransmissions is the check of TCP retransmissions. The kernel counts all connections of the host, of every
// program, including those within the host.
var checkRetransmissions = advice{
	name: "retransmissions", component: Network, behind: []string{"link", "link-errors", "loss"},
	source: "RetransSegs and OutSegs of /proc/net/snmp, over the whole host",
	limit:  Limit{Of: "retransmitted segments", Unit: "% in five minutes", Enter: resent, Leave: resentLeave},
	code:   Retransmissions,
	title:  "TCP retransmits many segments.",
	meaning: "The network loses packets, on this host or on the way. Everything behind a lost packet waits at least " +
		"a fifth of a second: the leader's heartbeats arrive late.",
	remedy: "find the connections with 'ss -ti' ('retrans'); if all go to one host, check that host, otherwise this " +
		"one: its interfaces ('ip -s link'), its cables and its switch",
	measure: func(a advice, at *track) evidence {
		w := window{span: resentSpan}
		return exceeds(time.Minute, resentSpan, func(in Input) Figure {
			s := in.Machine.Segments
			if w.take(in.Machine.At, s); !s.Known {
				return Figure{Absent: s.Absent}
			}
			return Figure{Value: w.share(resentFewest), Known: true}
		}, withLimit("%.2g %% of the segments of the last five minutes were retransmitted, limit %.0f %%"))(a, at)
	},
}
