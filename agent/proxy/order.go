// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"slices"
)

// candidate is a voter as a target for a new connection.
type candidate struct {
	use    bool // the agent wants it used
	failed bool // refused a connection recently
	open   int  // connections from this host
}

// order returns the order in which to try the voters, as indices: wanted voters that accept connections before those
// that recently refused one, and then those with fewer connections. Ties follow chance, a permutation of all indices;
// otherwise many hosts with one connection each would all choose the same voter. Unwanted voters are left out or, with
// all, come last.
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
