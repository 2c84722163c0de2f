// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// Retransmissions is the code of the check of TCP retransmissions.
const Retransmissions Code = "RETRANSMISSIONS"

const (
	resentSpan   = 5 * time.Minute
	resentFewest = 1000 // segments

	resent, resentLeave = 1.0, 0.5 // percent
)

// declareRetransmissions declares the check of TCP retransmissions. The kernel counts all connections of the host, of
// every program, including those within the host.
func declareRetransmissions() declaration {
	limit := Limit{Of: "retransmitted segments", Unit: "% in five minutes", Enter: resent, Leave: resentLeave}
	p := Problem{
		Retransmissions, Network, Warm, "TCP retransmits many segments.",
		"The network loses packets, on this host or on the way. Everything behind a lost packet waits at least a " +
			"fifth of a second: the leader's heartbeats arrive late.",
		"find the connections with 'ss -ti' ('retrans'); if all go to one host, check that host, otherwise this " +
			"one: 'ip -s link', cables, the switch",
	}
	d := advises("retransmissions", "RetransSegs and OutSegs of /proc/net/snmp, over the whole host", limit, p,
		func(at *track) evidence {
			w := window{span: resentSpan}
			return &level{
				spell: spell{code: Retransmissions, track: at, badFor: time.Minute, wellFor: resentSpan}, limit: limit,
				of: func(in Input) Figure {
					s := in.Machine.Segments
					if w.take(in.Machine.At, s); !s.Known {
						return Figure{Absent: s.Absent}
					}
					return Figure{Value: w.share(resentFewest), Known: true}
				},
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("%.2g %% of the segments of the last five minutes were retransmitted, "+
						"limit %.0f %%", f.Value, l.Enter)
				},
			}
		})
	d.Behind = []string{"link", "link-errors", "loss"}
	return d
}
