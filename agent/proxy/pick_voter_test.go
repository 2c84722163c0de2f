// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestVoterWithFewestConnectionsIsTriedFirst(t *testing.T) {
	t.Parallel()
	const used, failed = true, true
	for name, c := range map[string]struct {
		voters []candidate
		all    bool
		want   []int
	}{
		"fewest first": {
			[]candidate{{used, false, 5}, {used, false, 3}, {used, false, 4}},
			false,
			[]int{1, 2, 0},
		},
		"a voter that refused comes last": {
			[]candidate{{used, failed, 0}, {used, false, 9}, {used, false, 8}},
			false,
			[]int{2, 1, 0},
		},
		"an excluded voter is left out":   {[]candidate{{false, false, 0}, {used, false, 9}}, false, []int{1}},
		"and comes last with an old list": {[]candidate{{false, false, 0}, {used, failed, 9}}, true, []int{1, 0}},
		"all voters refused":              {[]candidate{{used, failed, 2}, {used, failed, 1}}, false, []int{1, 0}},
		"no voters":                       {nil, true, []int{}},
	} {
		for range 20 { // chance must not matter unless there is a tie
			if got := order(c.voters, rand.Perm(len(c.voters)), c.all); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

func TestTiesAreBrokenAtRandom(t *testing.T) {
	t.Parallel()
	voters := []candidate{{use: true}, {use: true}, {use: true}}
	for _, chance := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		if got := order(voters, chance, false); !slices.Equal(got, chance) {
			t.Errorf("%v, want %v", got, chance)
		}
	}
}
