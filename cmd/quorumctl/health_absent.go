// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/quorumd/quorumd/agent/control"
)

// together gives the checks that are not available for the same reason as one, in which all are named.
func together(all []control.Absence) []control.Absence {
	var out []control.Absence
	for _, n := range all {
		i := slices.IndexFunc(out, func(o control.Absence) bool { return o.Component == n.Component && o.Why == n.Why })
		if i < 0 {
			out = append(out, n)
			continue
		}
		out[i].Check += ", " + n.Check
	}
	return out
}
