// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/health"

// HoldsMember reports whether this host holds a member, including a learner: the member list includes the host or,
// while the list is unknown, its data directory is not known to be empty. The doubt counts as a member, because a
// member's disk must not be written to in bursts.
func HoldsMember(listKnown, listed, lost bool, data DataState) bool {
	if listKnown {
		return listed && !lost
	}
	return data != DataEmpty
}

// MeasuresInBursts reports whether the probe writes as fast as the disk allows: on a host without a member, while its
// qualifying run needs more writes.
func MeasuresInBursts(member bool, v health.Assessment) bool {
	return !member && v.Figures.QualifyNeed > 0
}
