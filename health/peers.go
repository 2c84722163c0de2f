// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"
)

// PeersReading is what TCP knows, at one moment, of the connections on which this host's etcd sends to its peers. The
// zero value says that nobody has looked.
type PeersReading struct {
	At     time.Duration
	Known  bool
	Absent string // why nothing is known
	All    []PeerConnection
}

// PeerConnection is one of them.
type PeerConnection struct {
	To       string // an address
	Cookie   uint64 // the kernel's own name of it, which no other has
	Segments Part   // those with data that it has sent, and of them those sent again
}

const peerSpan = 5 * time.Minute

// peerLosses adds up what etcd has sent to each address, over connections that come and go.
type peerLosses struct {
	limit Limit
	last  map[uint64]Part // by cookie
	by    map[string]*sentTo
}

// sentTo is what was sent to an address since it was first looked at.
type sentTo struct {
	Part

	over window
}

// look names the addresses to which too much is sent again. What a connection had sent before it was first seen counts
// for nothing, but for one that began since the look before.
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
	e.by = kept // one to which nothing is sent any more is gone from the cluster, or its absence is told by others
	for address, to := range kept {
		to.over.take(r.At, to.Part)
		if share := to.over.share(lossFewest); e.limit.beyond(share, bad) {
			_, sent := to.over.grown()
			all = append(all, fmt.Sprintf("%.2g %% of %.0f segments that etcd sent to %s were retransmitted in the "+
				"last "+
				"five minutes, limit %.10g %%", share, sent, address, e.limit.Enter))
		}
	}
	slices.Sort(all)
	return all
}
