// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// HostRemains is what one host has left of a cluster that has lost its majority, as the host's facts tell.
type HostRemains struct {
	HostID, Host string
	Cluster      string // its name
	PeerURL      string
	Age          time.Duration // of the facts; negative where the host's clock is ahead
	Quorum       bool          // it sees one
	Empty        bool          // nothing of etcd lies in its data directory; else:
	ClusterID    uint64
	MemberID     uint64
	Term, Index  uint64 // of the last entry of its log
	Commit       uint64 // the last entry of which it knows that it is committed
	InData       []ListedMember
	LastSeen     []ListedMember // as an etcd has last listed them to it
	Plans        []KnownPlan    // that it was told and has not carried out to the end
}

// KnownPlan is an earlier plan that a host was told.
type KnownPlan struct {
	ID, Survivor string        // the host that continues alone by it, by name
	GivenUp      bool          // on the host that was told
	Age          time.Duration // since the host was told
}

// ListedMember is an entry of a member list that a host remembers.
type ListedMember struct {
	ID      uint64
	Name    string
	PeerURL string
	Learner bool
}

// RecoveryChoice is what a person says of the plan that is to be made.
type RecoveryChoice struct {
	Cluster  string   // its name, as it was typed
	Gone     []string // voters that never come back, by name or ID in hexadecimal
	KeptOff  []string // survivors of earlier plans that never start again as they are, by name
	Survivor string   // the host that is to go on alone, by name; empty for the most advanced
	Snapshot bool     // with a snapshot, instead of data
}

// RankedHost is how a host stands beside the others.
type RankedHost struct {
	Place  int    // in what was given
	Behind uint64 // entries that the most advanced has beyond it; at least one where its term is older
	Chosen bool   // it is the one that would go on
	No     string // why it cannot be the survivor
}

// RankHosts puts hosts side by side, the most advanced first: by the term of the last entry, then its index, as raft
// itself compares logs.
func RankHosts(all []HostRemains) []RankedHost {
	out, voters := byLog(all), RecoveryVoters(all)
	for i := range out {
		switch of, best := all[out[i].Place], all[out[0].Place]; {
		case of.Empty:
			out[i].No = "it has no data"
		case of.learner():
			out[i].No = "it is a learner"
		case len(voters) > 0 && !slices.ContainsFunc(voters, of.is):
			out[i].No = "it is no voter any more"
		case best.Index > of.Index:
			out[i].Behind = best.Index - of.Index
		case best.Term > of.Term:
			out[i].Behind = 1
		}
	}
	if i := slices.IndexFunc(out, able); i >= 0 {
		out[i].Chosen = true
	}
	return out
}

// byLog puts the longest log first.
func byLog(all []HostRemains) []RankedHost {
	out := make([]RankedHost, 0, len(all))
	for i := range all {
		out = append(out, RankedHost{Place: i})
	}
	slices.SortStableFunc(out, func(a, b RankedHost) int {
		x, y := all[a.Place], all[b.Place]
		return cmp.Or(cmp.Compare(y.Term, x.Term), cmp.Compare(y.Index, x.Index), cmp.Compare(y.Commit, x.Commit),
			strings.Compare(x.Host, y.Host))
	})
	return out
}

// is tells whether the data are that member's.
func (r HostRemains) is(m ListedMember) bool { return !r.Empty && r.MemberID == m.ID }

func able(s RankedHost) bool { return s.No == "" }

// learner tells whether the host's own member is listed as one that does not vote.
func (r HostRemains) learner() bool {
	for _, m := range slices.Concat(r.InData, r.LastSeen) {
		if m.ID == r.MemberID {
			return m.Learner
		}
	}
	return false
}

// RecoveryVoters gives the voters that the host with the newest log lists; nil when nobody lists any.
func RecoveryVoters(all []HostRemains) []ListedMember {
	for _, s := range byLog(all) {
		for _, list := range [][]ListedMember{all[s.Place].InData, all[s.Place].LastSeen} {
			voters := slices.DeleteFunc(slices.Clone(list), func(m ListedMember) bool { return m.Learner })
			if len(voters) > 0 {
				return voters
			}
		}
	}
	return nil
}

// RecoveryMissing gives the voters of whose hosts there are no facts.
func RecoveryMissing(all []HostRemains) []ListedMember {
	return slices.DeleteFunc(RecoveryVoters(all), func(m ListedMember) bool {
		return slices.ContainsFunc(all, func(r HostRemains) bool {
			return r.is(m) || m.PeerURL != "" && r.PeerURL == m.PeerURL
		})
	})
}

// survivor gives the place of the host that continues alone, when no doubt is left. With a snapshot and no name it is one
// that has no data, if there is any.
func survivor(all []HostRemains, w RecoveryChoice) int {
	if w.Survivor != "" {
		return named(all, w)
	}
	list := RankHosts(all)
	if !w.Snapshot {
		return list[slices.IndexFunc(list, able)].Place
	}
	slices.SortStableFunc(list, func(a, b RankedHost) int {
		x, y := all[a.Place], all[b.Place]
		switch {
		case x.Empty == y.Empty:
			return strings.Compare(x.Host, y.Host)
		case x.Empty:
			return -1
		}
		return 1
	})
	return list[0].Place
}

// named gives the place of the host that a person has named, or -1.
func named(all []HostRemains, w RecoveryChoice) int {
	return slices.IndexFunc(all, func(r HostRemains) bool { return r.Host == w.Survivor })
}
