// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"cmp"
	"slices"

	"github.com/quorumd/quorumd/agent/control"
)

const reached = "answers" // a port that does

// ReachesAll tells whether somebody who sees that has looked at every one of the members with these IDs, and found
// nothing.
func ReachesAll(sees []control.Sight, members []string) bool {
	return !slices.ContainsFunc(members, func(id string) bool {
		i := slices.IndexFunc(sees, func(s control.Sight) bool { return s.MemberID == id })
		return i < 0 || sees[i].Peer != reached || sees[i].Client != reached
	})
}

// Way says how the host with a member, if it has one, reaches another: the time when both ports answer, or else what
// is wrong.
func Way(from string, sees []control.Sight, to string) Word {
	if from == to {
		return Word{"-", Plain}
	}
	i := slices.IndexFunc(sees, func(s control.Sight) bool { return s.MemberID == to })
	if i < 0 {
		return Word{"not known", Plain}
	}
	s := sees[i]
	switch {
	case s.Peer == reached && s.Client == reached:
		return Word{"≤ " + Latency(s.RTTSeconds), Good}
	case s.Peer == s.Client:
		return Word{s.Peer, Bad}
	case s.Client == reached || s.Client == "":
		return Word{"peer " + cmp.Or(s.Peer, "not known"), Bad}
	case s.Peer == reached || s.Peer == "":
		return Word{"client " + s.Client, Bad}
	}
	return Word{"peer " + s.Peer + ", client " + s.Client, Bad}
}
