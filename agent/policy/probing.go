// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/health"

// HoldsMember reports whether this host holds a member, including a learner: the list names it, or, while the list is
// unknown, its disk may hold one. In doubt it does: the disk of a member must not be written to in bursts.
func HoldsMember(read, listed, lost bool, data DataState) bool {
	if read {
		return listed && !lost
	}
	return data != DataEmpty
}

// MeasuresInBursts reports whether the probe writes as fast as it may, for the qualifying run: as long as that lacks
// writes, and its findings do not end it.
func MeasuresInBursts(member bool, v health.Assessment) bool {
	return !member && v.Figures.QualifyNeed > 0
}
