// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/quorumd/quorumd/health"

// HoldsMember tells whether this host holds a member, a learner included: the list names it, or while nobody has read
// the list, its disk may hold one. In doubt it does: the disk of a member must not be written to in bursts.
func HoldsMember(read, listed, lost bool, data DataState) bool {
	if read {
		return listed && !lost
	}
	return data != DataEmpty
}

// MeasuresInBursts tells whether the probe writes as fast as it may, for the qualifying run of a host: as long as that
// lacks writes, and what it has found does not end it.
func MeasuresInBursts(member bool, v health.Verdict) bool {
	return !member && v.Figures.QualifyNeed > 0
}
