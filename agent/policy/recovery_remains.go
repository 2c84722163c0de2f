// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// HostRemains is what one host has left of a cluster after quorum loss, by its facts.
type HostRemains struct {
	HostID, Host string
	Cluster      string // its name
	PeerURL      string
	Age          time.Duration // of the facts; negative if the host's clock is ahead
	Quorum       bool          // it observes a quorum
	Empty        bool          // its data directory holds no data of etcd; otherwise:
	ClusterID    uint64
	MemberID     uint64
	Term, Index  uint64         // of the last entry of its log
	Commit       uint64         // the last entry known to be committed
	InData       []ListedMember // the member list in its data
	LastSeen     []ListedMember // the last member list that etcd returned to it
	Plans        []KnownPlan    // plans it received and has not completed
}

// KnownPlan is an earlier plan that a host received.
type KnownPlan struct {
	ID, Survivor string        // Survivor is the name of the host that continues alone
	GivenUp      bool          // the host that received it has given it up
	Age          time.Duration // since the host received it
}

// ListedMember is an entry of a member list that a host remembers.
type ListedMember struct {
	ID      uint64
	Name    string
	PeerURL string
	Learner bool
}

// RecoveryChoice is an operator's input for a plan.
type RecoveryChoice struct {
	Cluster  string   // its name, as typed
	Gone     []string // voters that never come back, by name or ID in hexadecimal
	KeptOff  []string // survivors of earlier plans that never start again as they are, by name
	Survivor string   // the host that continues alone, by name; empty for the most advanced
	Snapshot bool     // the survivor restores a snapshot instead of using its data
}

// RankedHost is a host in the order of RankHosts.
type RankedHost struct {
	Index    int    // in the input
	Behind   uint64 // entries behind the most advanced host; at least one if its term is older
	Chosen   bool   // it would be the survivor
	Excluded string // why it cannot be the survivor; empty if it can
}

// RankHosts orders hosts, the most advanced first: by the term of the last entry, then its index, as raft compares
// logs.
func RankHosts(all []HostRemains) []RankedHost {
	out, voters := byLog(all), RecoveryVoters(all)
	for i := range out {
		switch r, best := all[out[i].Index], all[out[0].Index]; {
		case r.Empty:
			out[i].Excluded = "it has no data"
		case r.learner():
			out[i].Excluded = "it is a learner"
		case len(voters) > 0 && !slices.ContainsFunc(voters, r.hasDataOf):
			out[i].Excluded = "it is no longer a voter"
		case best.Index > r.Index:
			out[i].Behind = best.Index - r.Index
		case best.Term > r.Term:
			out[i].Behind = 1
		}
	}
	if i := slices.IndexFunc(out, canContinue); i >= 0 {
		out[i].Chosen = true
	}
	return out
}

// byLog returns the hosts, the one with the most advanced log first.
func byLog(all []HostRemains) []RankedHost {
	out := make([]RankedHost, 0, len(all))
	for i := range all {
		out = append(out, RankedHost{Index: i})
	}
	slices.SortStableFunc(out, func(a, b RankedHost) int {
		x, y := all[a.Index], all[b.Index]
		return cmp.Or(cmp.Compare(y.Term, x.Term), cmp.Compare(y.Index, x.Index), cmp.Compare(y.Commit, x.Commit),
			strings.Compare(x.Host, y.Host))
	})
	return out
}

// hasDataOf reports whether the data on this host is that member's.
func (r HostRemains) hasDataOf(m ListedMember) bool { return !r.Empty && r.MemberID == m.ID }

func canContinue(s RankedHost) bool { return s.Excluded == "" }

// learner reports whether the host's own member is listed as a learner.
func (r HostRemains) learner() bool {
	for _, m := range slices.Concat(r.InData, r.LastSeen) {
		if m.ID == r.MemberID {
			return m.Learner
		}
	}
	return false
}

// RecoveryVoters returns the voters that the host with the newest log lists; nil if no host lists any.
func RecoveryVoters(all []HostRemains) []ListedMember {
	for _, s := range byLog(all) {
		for _, list := range [][]ListedMember{all[s.Index].InData, all[s.Index].LastSeen} {
			voters := slices.DeleteFunc(slices.Clone(list), func(m ListedMember) bool { return m.Learner })
			if len(voters) > 0 {
				return voters
			}
		}
	}
	return nil
}

// RecoveryMissing returns the voters whose hosts' facts are missing.
func RecoveryMissing(all []HostRemains) []ListedMember {
	return slices.DeleteFunc(RecoveryVoters(all), func(m ListedMember) bool {
		return slices.ContainsFunc(all, func(r HostRemains) bool {
			return r.hasDataOf(m) || m.PeerURL != "" && r.PeerURL == m.PeerURL
		})
	})
}

// survivor returns the index of the host that continues alone, provided that there is no doubt. If a snapshot is
// restored and no host is named, it prefers a host without data.
func survivor(all []HostRemains, w RecoveryChoice) int {
	if w.Survivor != "" {
		return named(all, w)
	}
	list := RankHosts(all)
	if !w.Snapshot {
		return list[slices.IndexFunc(list, canContinue)].Index
	}
	slices.SortStableFunc(list, func(a, b RankedHost) int {
		x, y := all[a.Index], all[b.Index]
		switch {
		case x.Empty == y.Empty:
			return strings.Compare(x.Host, y.Host)
		case x.Empty:
			return -1
		}
		return 1
	})
	return list[0].Index
}

// named returns the index of the host that an operator has named, or -1.
func named(all []HostRemains, w RecoveryChoice) int {
	return slices.IndexFunc(all, func(r HostRemains) bool { return r.Host == w.Survivor })
}
