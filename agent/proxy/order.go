// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"slices"
)

// candidate is a voter as it looks to a connection that is to go somewhere.
type candidate struct {
	use    bool // the agent wants it used
	failed bool // it took no connection lately
	open   int  // connections that it has from here
}

// order gives in which order voters are tried, as indices: those that are wanted and take connections before those that
// took none lately, and those with fewer connections first. Between equals the order of chance decides, which is one
// of all indices: many hosts with a connection each would else all go to the same voter. Those that are not wanted are
// left out, or, with all, tried last.
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
