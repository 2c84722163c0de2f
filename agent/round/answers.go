// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Answers are the status replies of the individual members. They are kept only if the member list could not be read,
// usually because there is no quorum.
type Answers struct {
	// the last member list; before the first one, a made-up member per known endpoint and the cluster ID 0
	Membership cluster.Membership
	Of         map[uint64]cluster.Status
}

// Answered reports whether the member list could not be read but a member answered its status request.
func (r *Round) Answered(id uint64) bool {
	s, asked := r.Answers.Of[id]
	return asked && s.Err == nil && r.Answers.Membership.ClusterID != 0
}

// Answering counts the voters that answered their status requests although the member list could not be read.
func (r *Round) Answering() (n int) {
	for _, m := range r.Answers.Membership.Members {
		if !m.Learner && r.Answered(m.ID) {
			n++
		}
	}
	return n
}

// AnswersNow reports whether this host's last observations of the member to be replaced, if there are any, were made
// after it first saw the record in etcd that asks for them. Without such a record or an operation it returns true. In a
// readdress, it reports whether this host reaches the members that the operation asks about.
func (r *Round) AnswersNow() bool {
	if r.AskedSince == 0 || r.Op == nil {
		return true
	}
	if r.AsksConnections() {
		return r.connected()
	}
	old := func(m network.Reading) bool {
		return m.Member == uint64(r.Op.Replaces) && m.LookedAt != 0 && m.LookedAt <= r.AskedSince
	}
	return (!r.Connections.Known || r.Connections.At > r.AskedSince) && !slices.ContainsFunc(r.Probes, old)
}

// AsksConnections reports whether the operation in flight waits until this host's etcd is connected to other members.
func (r *Round) AsksConnections() bool {
	return r.Op != nil && policy.AsksConnections(r.Op.Kind, policy.Work(r.Op.Work), policy.OpPhase(r.Op.Phase))
}

// connected reports whether this host's etcd is connected to the members that the operation asks about.
func (r *Round) connected() bool {
	if r.Op.Phase == string(policy.PhaseVerify) {
		return r.reaches(uint64(r.Op.MemberID))
	}
	return !slices.ContainsFunc(r.Probes, func(p network.Reading) bool {
		m, listed := r.Membership.ByID(p.Member)
		return listed && !m.Learner && m.ID != uint64(r.Op.MemberID) && !r.reaches(m.ID)
	})
}

// reaches reports whether this host's etcd is connected to a member at its peer URL, and both of the member's ports, if
// this host probes them, accept connections from this host. All of this must have been observed after this host first
// saw the record that asks about the member. A member with an https peer URL must also have answered a request: a
// connection that the member opened makes the member look active too, and the member checks this host's certificate
// only after the handshake.
func (r *Round) reaches(member uint64) bool {
	i := slices.IndexFunc(r.Probes, func(m network.Reading) bool { return m.Member == member })
	if i >= 0 && (r.Probes[i].Missed || r.Probes[i].LookedAt <= r.AskedSince) {
		return false
	}
	m, _ := r.Membership.ByID(member)
	return r.Connections.Known && r.Connections.At > r.AskedSince && r.Connections.Active[member] &&
		r.PeerRequests.Answered(SecuredURLs(m), r.AskedSince)
}

// OwnMember returns this host's member in a list: the member that this host's data belongs to, if this host's disk
// records that member as its own, or else the member with the configured peer URL. While the content of the data
// directory is unknown, the recorded member counts. Data alone proves nothing, because it may be a copy of another
// host's data.
func (r *Round) OwnMember(list cluster.Membership, peerURL string) (cluster.Member, bool) {
	d := policy.Data{State: policy.DataUnknown}
	switch found := r.Data.Value; {
	case !r.Data.OK, found.Problem != "":
	case !found.Empty && found.MemberID != 0:
		d = policy.Data{State: policy.DataMember, MemberID: found.MemberID, ClusterID: found.ClusterID}
	default:
		d.State, d.Mount = policy.DataEmpty, found.Mount
	}
	noted := policy.Self{MemberID: r.Noted.Member, ClusterID: r.Noted.Cluster, DataMount: r.Noted.Mount}
	id := policy.RecognizedMember(d.Mounted(noted), noted, list.ClusterID)
	if id != r.Noted.Member || list.ClusterID != r.Noted.Cluster {
		id = 0
	}
	if m, listed := list.ByID(id); listed && slices.ContainsFunc(m.PeerURLs, func(url string) bool {
		return policy.IsDefaultMember(id, list.ClusterID, url)
	}) {
		id = 0
	}
	return list.Recognize(id, peerURL)
}

// Reachability returns how this host reaches a member according to this host's probes. For a lost member, it includes
// the time since which the member has been lost, by this host's wall clock.
func (r *Round) Reachability(m network.Reading) record.Reachability {
	to := record.Reachability{MemberID: record.MemberID(m.Member), Peer: m.Peer.State, Client: m.Client.State}
	if m.Lost {
		to.LostSince = r.Wall.Add(m.LostAt - r.At).UTC().Truncate(time.Millisecond)
	}
	return to
}

// Link returns [record.LinkUp] if this host's etcd receives messages from a member, [record.LinkNone] if it does not,
// and an empty string if that is unknown.
func (r *Round) Link(member uint64) string {
	switch {
	case !r.Connections.Known:
		return ""
	case r.Connections.Of[member]:
		return record.LinkUp
	}
	return record.LinkNone
}
