// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// SelfNote is a change of what this host's disk records about the cluster and this host's role in it. The zero value
// changes nothing.
type SelfNote struct {
	ClusterAnswered bool // record that this cluster has answered this host
	Member          bool // record that this host is the cluster's member MemberID, or no member if that is 0
	MemberID        uint64
	Standby         uint64 // record that this learner is a standby, until this host begins a join; 0: unchanged
	Domains         bool   // record the failure domain of each member's host, from the view
	Learners        bool   // record the permanent learners, from the view
	Lost            uint64 // record that this listed member is given up, because its data is gone; 0: unchanged
	Mount           string // record the mount points of the file systems with the member's data
	Clean           bool   // record how long, according to the view, this host has been healthy since it was ejected
}

// noteSelf returns what to record about a cluster that has answered in this round. A cluster that this host is creating
// on request does not count as having answered. This host's learner is recorded as a standby, even if it is a permanent
// learner, once it has started and no operation is in flight.
func noteSelf(v View) SelfNote {
	c, data := v.Cluster, v.Data
	if _, stray := strayDefault(v); !c.Listed || !c.Fresh || stray && c.ID == data.ClusterID {
		return SelfNote{}
	}
	made := v.Bootstrap.Requested && v.Bootstrap.Listed
	n := SelfNote{
		ClusterAnswered: c.ID != v.Bootstrap.LastCluster && !made, Clean: recordsHealthyPeriod(v),
		Domains: newDomain(v), Learners: newLearner(v),
	}
	if m, _ := v.member(); m.ID != v.Self.LostID && v.givesUp(m) {
		n.Lost = m.ID
	}
	if !c.Reachable || data.State != DataMember || data.ClusterID != c.ID {
		return n
	}
	if !v.foreign() && data.Mount != v.Self.DataMount {
		n.Mount = data.Mount
	}
	m, listed := v.memberByID(data.MemberID)
	known := v.Self.ClusterID == c.ID && v.Self.MemberID == m.ID || v.Self.ClusterID == 0 && !listed
	// a member that was given up may run again on its old disk
	if !v.foreign() && (!known || m.Live && m.ID == v.Self.LostID) {
		n.Member, n.MemberID = true, m.ID
	}
	if v.Op == nil && !v.cannotRead(RecordOp) && m.Learner && m.Name != "" && m.ID != v.Self.StandbyID {
		n.Standby = m.ID
	}
	return n
}

// newLearner reports whether this host's disk has to record the permanent learners of its own cluster again: a member's
// LearnerNote differs from the recorded one.
func newLearner(v View) bool {
	differs := func(m Member) bool { return m.LearnerNote() != m.NotedLearner }
	return !v.foreign() && slices.ContainsFunc(v.Cluster.Members, differs)
}

// LearnerNote returns what a host's disk records about a member: see [Member.NotedLearner].
func (m Member) LearnerNote() int {
	switch {
	case !m.Permanent:
		return 0
	case m.MaxLearners == 0:
		return -1
	}
	return m.MaxLearners
}

// LearnerNoteOf returns the LearnerNote of the member with that ID; 0 if there is no such member.
func (v View) LearnerNoteOf(id uint64) int {
	m, _ := v.memberByID(id)
	return m.LearnerNote()
}

// Conflict returns how this host's identity conflicts with another host's or a member's; empty if it does not. If two
// hosts have the same name or peer URL, neither joins: only an operator can decide which of them may. If two agents
// have the same host ID, the one that wrote the host record continues, and the other takes no step.
func Conflict(v View) string {
	if text := wrongName(v); text != "" {
		return text
	}
	for _, h := range v.Hosts {
		switch {
		case h.ID == v.Self.ID && !h.Own:
			return "another agent runs with this host's ID, " + h.ID
		case h.ID == v.Self.ID:
		case h.Name == v.Self.Name:
			return "host " + h.ID + " has the same name, " + h.Name
		case h.PeerURL == v.Self.PeerURL:
			return "host " + h.Name + " has the same peer URL, " + h.PeerURL
		}
	}
	for _, m := range v.Cluster.Members {
		own := v.Data.State == DataMember && v.Data.ClusterID == v.Cluster.ID && v.Data.MemberID == m.ID
		switch {
		case m.PeerURL == v.Self.PeerURL:
		case own:
			return "etcd.peerURL is " + v.Self.PeerURL + ", but this host's member is registered with " + m.PeerURL
		case m.Name == v.Self.Name:
			return "a member with this host's name has a different peer URL, " + m.PeerURL
		}
	}
	return newURLConflict(v)
}

// wrongName returns why cluster.name must be wrong: hosts in this etcd use other names, and no other member's host uses
// this host's. Another name means another lock, so this host takes no step.
func wrongName(v View) string {
	used := slices.ContainsFunc(v.Cluster.Members, func(m Member) bool {
		h, present := v.hostOf(m)
		return present && h.ID != v.Self.ID
	})
	if len(v.Cluster.OtherNames) == 0 || used {
		return ""
	}
	return "no other member of this etcd cluster uses this host's cluster.name; their hosts use " +
		strings.Join(v.Cluster.OtherNames, " or ")
}

// RecordKind is the kind of a record in etcd.
type RecordKind string

// The kinds of records.
const (
	RecordOp      RecordKind = "op"
	RecordPause   RecordKind = "pause"
	RecordRollout RecordKind = "rollout"
	RecordLock    RecordKind = "lock"
	RecordHost    RecordKind = "host"
	RecordRepairs RecordKind = "repairs"
	RecordSize    RecordKind = "size"
	RecordRetired RecordKind = "retired"
)

// Unreadable is a record in etcd that this agent cannot read.
type Unreadable struct {
	Kind RecordKind
	Key  string
	Why  string
}

// recordInfo declares the effect of an unreadable record of a kind, and the remedy.
type recordInfo struct {
	kind      RecordKind
	blocksAll bool // while this agent cannot read the record, it takes no step, as during a pause
	meaning   string
	remedy    string // %s is replaced by the record's key
}

func records() []recordInfo {
	return []recordInfo{
		{RecordOp, true, "so no operation begins", "quorumctl operation release --force --reason '<why>' deletes it"},
		{RecordPause, true, "so the cluster counts as paused", "quorumctl resume deletes it"},
		{RecordRollout, false, "so no rollout continues", "quorumctl rollout abort deletes it"},
		{RecordRepairs, false, "so no voter is replaced", "etcdctl del %s"},
		{RecordSize, false, "so the cluster keeps its number of voters", "quorumctl cluster resize writes it again"},
		{RecordRetired, false, "so the host that it names does not join", "quorumctl retire HOST --undo deletes it"},
		{RecordLock, false, "so the lock counts as held by another host", "if it stays: etcdctl del %s"},
		{
			RecordHost, false, "so nothing is known about that host",
			"run the same quorumd version there as here, and restart it; if there is no such host: etcdctl del %s",
		},
	}
}

// cannotRead reports whether a record of that kind cannot be read.
func (v View) cannotRead(kind RecordKind) bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.Kind == kind })
}

// Hint returns the remedy for a record of that kind that cannot be read.
func (u Unreadable) Hint() string {
	for _, info := range records() {
		if info.kind == u.Kind && strings.Contains(info.remedy, "%s") {
			return fmt.Sprintf(info.remedy, u.Key)
		}
		if info.kind == u.Kind {
			return info.remedy
		}
	}
	return ""
}

func (u Unreadable) info() recordInfo {
	for _, info := range records() {
		if info.kind == u.Kind {
			return info
		}
	}
	return recordInfo{kind: u.Kind, blocksAll: true}
}

// blocksAll reports whether an unreadable record withholds steps as a pause does.
func (v View) blocksAll() bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.info().blocksAll })
}

// unreadable returns the reason RecordUnreadable if there are unreadable records. It names the most important record.
func (v View) unreadable() (Reason, bool) {
	if len(v.Unreadable) == 0 {
		return Reason{}, false
	}
	first := v.Unreadable[0]
	if i := slices.IndexFunc(v.Unreadable, func(u Unreadable) bool { return u.info().blocksAll }); i >= 0 {
		first = v.Unreadable[i]
	}
	text := fmt.Sprintf("%s: %s, %s; %s", first.Key, first.Why, first.info().meaning, first.Hint())
	if more := len(v.Unreadable) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return Reason{RecordUnreadable, text}, true
}

// withUnreadable adds the reason RecordUnreadable to a decision if records are unreadable and the decision does not
// have it yet.
func (v View) withUnreadable(d Decision) Decision {
	reported := slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == RecordUnreadable })
	switch r, holds := v.unreadable(); {
	case !holds || reported:
	case v.blocksAll() && d.Step.Kind == StepNone:
		d.Reasons = append([]Reason{r}, d.Reasons...)
	default:
		d.Reasons = append(slices.Clone(d.Reasons), r)
	}
	return d
}

// An etcd that starts on an empty disk without flags or ETCD_* variables creates a single-member cluster. Its member
// and cluster IDs are the same on every host, because etcd derives them from the default peer URL and the default
// token.
const (
	defaultMemberID  = 0x8e9e05c52164694d
	defaultClusterID = 0xcdf818194e3a8c32
	defaultPeerURL   = "http://localhost:2380"
)

// hasDefaultData reports whether data belongs to a default single-member cluster, or to a cluster that has grown from
// one: a member keeps its ID when its peer URL changes.
func hasDefaultData(member, cluster uint64) bool {
	return member == defaultMemberID && cluster == defaultClusterID
}

// strayDefault reports whether etcd has created a default single-member cluster here, unless the default peer URL is
// this host's own. A cluster whose member list has a different peer URL for this member is not stray. Nor is this
// host's expected cluster (see Cluster.ExpectedID), unless its member list has the default peer URL.
func strayDefault(v View) (string, bool) {
	if v.Data.State != DataMember || !hasDefaultData(v.Data.MemberID, v.Data.ClusterID) ||
		v.Self.PeerURL == defaultPeerURL {
		return "", false
	}
	if m, listed := v.memberByID(defaultMemberID); v.Cluster.ID == defaultClusterID && listed {
		if m.PeerURL != defaultPeerURL {
			return "", false
		}
	} else if v.Cluster.ExpectedID == defaultClusterID {
		return "", false
	}
	return fmt.Sprintf("etcd was started here without settings and created a single-member cluster: member %x, peer "+
		"URL %s",
		uint64(defaultMemberID), defaultPeerURL), true
}

// ownDefaultCluster waits while this host's data belongs to a stray default cluster, so that no later concern starts
// its etcd.
func ownDefaultCluster(v View) (Decision, bool) {
	text, stray := strayDefault(v)
	if !stray {
		return Decision{}, false
	}
	return wait(DefaultCluster, "%s", text), true
}

// strayRemains reports hosts that hold data of stray default clusters. Although the members have the same ID, they do
// not hold copies of the data of one cluster.
func strayRemains(all []HostRemains, _ RecoveryChoice) (text, about string) {
	var strays []string
	unlisted := 0
	for _, r := range all {
		if r.Empty || !hasDefaultData(r.MemberID, r.ClusterID) || r.PeerURL == defaultPeerURL {
			continue
		}
		lists := slices.Concat(r.InData, r.LastSeen)
		switch at := slices.IndexFunc(lists, r.hasDataOf); {
		case at < 0 && len(r.InData) > 0, at >= 0 && lists[at].PeerURL != defaultPeerURL:
			continue
		case at < 0:
			unlisted++
		}
		strays = append(strays, r.Host)
	}
	if len(strays) == 0 || len(strays) == 1 && unlisted == 1 { // a single unlisted host proves nothing
		return "", ""
	}
	return fmt.Sprintf("on %s, etcd was started without settings and created a single-member cluster (member %x, %s), "+
		"which contains no data of cluster %q", strings.Join(strays, " and "), uint64(defaultMemberID), defaultPeerURL,
		all[0].Cluster), strings.Join(strays, ", ")
}
