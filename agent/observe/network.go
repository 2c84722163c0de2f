// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// lookAtNetwork probes all other members in the background, and adds the last results to the round.
func (o *Observer) lookAtNetwork(r *round.Round) {
	if o.opt.Network == nil {
		return
	}
	r.ProbeEvery = network.Pace(!o.pace.attends, o.pace.size)
	if r.Listed {
		var others []network.Member
		for _, m := range r.Membership.Members {
			if own, _ := r.OwnMember(r.Membership, o.opt.Config.Etcd.PeerURL); m.ID == own.ID {
				continue
			}
			others = append(others, network.Member{
				ID: m.ID, Name: m.Name, Peer: firstOf(m.PeerURLs), Client: firstOf(m.ClientURLs),
			})
		}
		o.opt.Network.Watch(others, r.ProbeEvery)
	}
	r.Probes = o.opt.Network.Readings()
	o.noteAsked(r)
	o.lookAgain(r)
}

// lookAgain probes a member again if its last result is outdated. It is outdated if the member has since stopped
// answering this host's etcd calls, or if an operation has since asked for reports on members (see noteAsked). Resting
// hosts (see pace) do not do this, because there are too many of them.
func (o *Observer) lookAgain(r *round.Round) {
	if !o.pace.attends || o.before == nil {
		return
	}
	for _, s := range r.Probes {
		since := r.AskedSince
		for _, m := range o.before.View.Cluster.Members {
			switch {
			case m.ID != s.Member:
			case !m.Live:
				since = max(since, o.before.At-m.DownFor)
			case r.StatusesAt == r.At && r.Statuses[m.ID].Err != nil:
				since, r.FellSilent = r.At, true
			}
		}
		if s.LookedAt < since {
			o.opt.Network.ProbeNow(s.Member, since)
		}
	}
}

// noteAsked records when this agent first saw the current record of an operation that asks which members are dead, or
// to which members this host's etcd is connected. Earlier observations do not answer that question.
func (o *Observer) noteAsked(r *round.Round) {
	if r.Op == nil || !policy.NeedsDeadReports(r.Op.Kind) && !r.AsksConnections() {
		o.asked, r.AskedSince = asked{}, 0
		return
	}
	if o.asked.at != r.OpAt {
		o.asked = asked{r.OpAt, o.opt.Now()}
	}
	r.AskedSince = o.asked.since
}

// asked holds the time at which the record with this modification revision was first seen.
type asked struct {
	at    int64
	since time.Duration
}

// network returns which members reach each other. The result is unknown if no prober is available.
func (j *judge) network(r *round.Round) health.NetworkReading {
	if j.opt.Network == nil {
		return health.NetworkReading{}
	}
	return networkReading(r, j.opt.Config.Host.Name)
}

// networkReading derives which members reach each other from this host's observations and the other hosts' records. It
// leaves out hosts without a record, because they may be down.
func networkReading(r *round.Round, self string) health.NetworkReading {
	switch {
	case !r.Reachable:
		return health.NetworkReading{Absent: "the cluster does not answer, so the state of its members is unknown"}
	case r.HostsAt == 0:
		return health.NetworkReading{}
	}
	out := health.NetworkReading{Known: true, Self: self}
	names := map[uint64]string{}
	for _, h := range r.Hosts {
		// this leaves out spares, and hosts that claim a member that etcd does not list
		if _, listed := r.Membership.ByID(uint64(h.MemberID)); listed {
			names[uint64(h.MemberID)] = h.Name
		}
	}
	said := map[[2]string]bool{}
	add := func(from string, member uint64, state health.PathState, sent health.Part) {
		if to := names[member]; to != "" && to != from && state != health.PathUnknown && !said[[2]string{from, to}] {
			said[[2]string{from, to}] = true
			out.Paths = append(out.Paths, health.Path{From: from, To: to, State: state, Segments: sent})
		}
	}
	for _, s := range r.Probes {
		add(self, s.Member, pathState(s.Peer.State, s.Client.State), segments(s))
	}
	for _, h := range r.Hosts {
		// Leave out spares, because there may be many, and the cluster does not depend on their connectivity.
		if h.Name == self || names[uint64(h.MemberID)] != h.Name {
			continue
		}
		for _, s := range h.Sees {
			state := pathState(s.Peer, s.Client)
			add(h.Name, uint64(s.MemberID), state, health.Part{})
		}
	}
	return out
}

// segments returns how many of the TCP segments that probes sent to a member were retransmitted.
func segments(s network.Reading) health.Part {
	sent := s.Peer.Sent + s.Client.Sent
	return health.Part{Of: float64(s.Peer.Resent + s.Client.Resent), Among: float64(sent), Known: sent > 0}
}

// pathState returns the state of the path to a host from its two ports. If only one port is silent, etcd hangs. If one
// port refuses the connection, etcd is not running. In both cases the host is reachable.
func pathState(peer, client record.PortState) health.PathState {
	either := func(s record.PortState) bool { return peer == s || client == s }
	switch {
	case either(record.PortUnreachable):
		return health.PathLost
	case either(record.PortLargeLost):
		return health.PathLargeLost
	case either(record.PortAnswers) || either(record.PortRefused):
		return health.PathWell
	}
	return health.PathUnknown
}
