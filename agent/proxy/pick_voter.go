// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"slices"
)

// candidate is a voter considered for a new connection.
type candidate struct {
	use    bool // the agent has selected this voter
	failed bool // the voter recently refused a connection
	open   int  // number of connections from this host
}

// order returns the indices of the voters in the order to try them. Selected voters that recently refused a connection
// come after the other selected ones. Within each group, voters with fewer connections come first. chance is a random
// permutation of all indices, which breaks ties. Without it, many hosts with one connection each would all choose the
// same voter. Voters that are not selected come last if all is true, and are left out otherwise.
func order(voters []candidate, chance []int, all bool) []int {
	rank := func(c candidate) int {
		switch {
		case c.use && !c.failed:
			return 0
		case c.use:
			return 1
		}
		return 2
	}
	tried := slices.DeleteFunc(slices.Clone(chance), func(i int) bool { return !voters[i].use && !all })
	slices.SortStableFunc(tried, func(i, j int) int {
		a, b := voters[i], voters[j]
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.open, b.open))
	})
	return tried
}
