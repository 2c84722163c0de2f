// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"
)

// PeersReading is TCP's state, at one moment, of the connections on which this host's etcd sends to its peers. The zero
// value means not read.
type PeersReading struct {
	At     time.Duration
	Known  bool
	Absent string // why the connections are unknown, as a stable text
	All    []PeerConnection
}

// PeerConnection is a connection on which etcd sends to a peer.
type PeerConnection struct {
	To       string // an address
	Cookie   uint64 // the kernel's unique ID of the connection
	Segments Part   // segments with data that were sent, and those of them that were retransmitted
}

const peerSpan = 5 * time.Minute

// peerLosses adds up what etcd has sent to each address, over all connections to it.
type peerLosses struct {
	limit Limit
	last  map[uint64]Part // by cookie
	by    map[string]*sentTo
}

// sentTo is what was sent to an address while readings showed a connection to it.
type sentTo struct {
	Part

	over window
}

// look lists the addresses with too many retransmissions. It ignores what a connection had sent before it was first
// observed, unless the connection began after the previous reading.
func (e *peerLosses) look(r PeersReading, bad bool) (all []string) {
	if !r.Known {
		e.last, e.by = nil, nil
		return nil
	}
	first, before := e.last == nil, e.last
	e.last = map[uint64]Part{}
	kept := map[string]*sentTo{}
	for _, c := range r.All {
		if !c.Segments.Known {
			continue
		}
		was, known := before[c.Cookie]
		if first && !known {
			was = c.Segments
		}
		e.last[c.Cookie] = c.Segments
		to := e.by[c.To]
		if to == nil {
			to = &sentTo{Part: Part{Known: true}, over: window{span: peerSpan}}
			to.over.take(r.At, to.Part)
		}
		if e.by == nil {
			e.by = map[string]*sentTo{}
		}
		e.by[c.To], kept[c.To] = to, to
		to.Of += max(0, c.Segments.Of-was.Of)
		to.Among += max(0, c.Segments.Among-was.Among)
	}
	e.by = kept // an address without a connection has left the cluster, or other checks report its absence
	for address, to := range kept {
		to.over.take(r.At, to.Part)
		if share := to.over.share(lossFewest); e.limit.beyond(share, bad) {
			_, sent := to.over.grown()
			all = append(all, fmt.Sprintf("%.2g %% of %.0f segments that etcd sent to %s were retransmitted in the "+
				"last five minutes, limit %.10g %%", share, sent, address, e.limit.Enter))
		}
	}
	slices.Sort(all)
	return all
}
