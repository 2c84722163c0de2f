// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"slices"

	"github.com/quorumd/quorumd/agent/record"
)

const reached = "answers" // the state of a port that answers

// ReachesAll reports whether a host has checked all members with these IDs and reaches every one.
func ReachesAll(sees []record.Sight, members []string) bool {
	return !slices.ContainsFunc(members, func(id string) bool {
		i := slices.IndexFunc(sees, func(s record.Sight) bool { return s.MemberID.String() == id })
		return i < 0 || !sees[i].Lost.IsZero() || sees[i].Peer != reached || sees[i].Client != reached
	})
}

// Way describes the connection from a host to the member with ID to: the connection time if both ports answer,
// otherwise what is wrong. from is the host's own member ID, or empty.
func Way(from string, sees []record.Sight, to string) Styled {
	if from == to {
		return Styled{"-", Plain}
	}
	i := slices.IndexFunc(sees, func(s record.Sight) bool { return s.MemberID.String() == to })
	if i < 0 {
		return Styled{"not known", Plain}
	}
	s := sees[i]
	well := func(port string) bool { return port == reached || port == "" } // unknown does not count as a failure
	switch {
	case !s.Lost.IsZero() && well(s.Peer) && well(s.Client):
		return Styled{"lost", Bad} // the cause is not known yet
	case s.Peer == reached && s.Client == reached:
		return Styled{"≤ " + Latency(s.RTTSeconds), Good}
	case s.Peer == "" && s.Client == "":
		return Styled{"not known", Plain}
	case s.Peer == "" && s.Client == reached:
		return Styled{"peer not known", Plain}
	case s.Client == "" && s.Peer == reached:
		return Styled{"client not known", Plain}
	case s.Peer == s.Client:
		return Styled{s.Peer, Bad}
	case well(s.Client):
		return Styled{"peer " + s.Peer, Bad}
	case well(s.Peer):
		return Styled{"client " + s.Client, Bad}
	}
	return Styled{"peer " + s.Peer + ", client " + s.Client, Bad}
}
