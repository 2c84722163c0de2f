// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"slices"

	"github.com/quorumd/quorumd/agent/record"
)

// ReachesAll reports whether a host has checked all members with these IDs and reaches every one.
func ReachesAll(observed []record.Reachability, members []string) bool {
	return !slices.ContainsFunc(members, func(id string) bool {
		i := slices.IndexFunc(observed, func(s record.Reachability) bool { return s.MemberID.String() == id })
		return i < 0 || observed[i].Lost() || observed[i].Peer != record.PortAnswers ||
			observed[i].Client != record.PortAnswers
	})
}

// Reachability describes the connection from a host to the member with ID to: the connection time if both ports answer,
// otherwise what is wrong or not known; "-" for the host's own member. from is the ID of the host's own member, or
// empty.
func Reachability(from string, observed []record.Reachability, to string) Styled {
	if from == to {
		return Styled{"-", Plain}
	}
	i := slices.IndexFunc(observed, func(s record.Reachability) bool { return s.MemberID.String() == to })
	if i < 0 {
		return Styled{"not known", Plain}
	}
	s := observed[i]
	well := func(port record.PortState) bool { // unknown does not count as a failure
		return port == record.PortAnswers || port == record.PortUnknown
	}
	switch {
	case s.Lost() && well(s.Peer) && well(s.Client):
		return Styled{"lost", Bad} // the cause is not known yet
	case s.Peer == record.PortAnswers && s.Client == record.PortAnswers:
		return Styled{"≤ " + Latency(s.RTTSeconds), Good}
	case s.Peer == record.PortUnknown && s.Client == record.PortUnknown:
		return Styled{"not known", Plain}
	case s.Peer == record.PortUnknown && s.Client == record.PortAnswers:
		return Styled{"peer not known", Plain}
	case s.Client == record.PortUnknown && s.Peer == record.PortAnswers:
		return Styled{"client not known", Plain}
	case s.Peer == s.Client:
		return Styled{string(s.Peer), Bad}
	case well(s.Client):
		return Styled{"peer " + string(s.Peer), Bad}
	case well(s.Peer):
		return Styled{"client " + string(s.Client), Bad}
	}
	return Styled{"peer " + string(s.Peer) + ", client " + string(s.Client), Bad}
}
