// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "math"

const (
	// slowShare is the share of writes over the limit on a disk whose p99 is exactly the limit.
	slowShare = 0.01
	// falseAlarm is the highest acceptable probability that a disk whose share is exactly slowShare reaches the limit
	// of [trip] by chance.
	falseAlarm = 1e-3
)

// trip returns how many of n writes must be over the limit to prove that more than [slowShare] of all writes are over
// it. It is the smallest k for which k or more such writes occur by chance with a probability of at most [falseAlarm].
// For n = 300 that is 11. If no number of writes is proof, as with n = 1, trip returns n + 1.
func trip(n int) int {
	// below is the probability of fewer than k, and term is the logarithm of the probability of exactly k, because
	// 0.99^n is too small for a float64 when n is large.
	below, term := 0.0, float64(n)*math.Log1p(-slowShare)
	odds := math.Log(slowShare) - math.Log1p(-slowShare)
	for k := range n + 1 {
		if 1-below <= falseAlarm {
			return k
		}
		below += math.Exp(term)
		term += math.Log(float64(n-k)) - math.Log(float64(k+1)) + odds
	}
	return n + 1
}

// allowed returns how many of n writes may be over the limit: [slowShare] of them.
func allowed(n int) int { return n / 100 }
