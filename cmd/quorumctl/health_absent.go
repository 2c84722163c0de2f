// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/quorumd/quorumd/health"
)

// mergeAbsences merges the unavailable checks of a component that have the same reason into one entry that names all of
// them.
func mergeAbsences(all []health.Absence) []health.Absence {
	var out []health.Absence
	for _, n := range all {
		i := slices.IndexFunc(out, func(o health.Absence) bool { return o.Component == n.Component && o.Why == n.Why })
		if i < 0 {
			out = append(out, n)
			continue
		}
		out[i].Check += ", " + n.Check
	}
	return out
}
