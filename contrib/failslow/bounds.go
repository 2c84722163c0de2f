// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// wilson returns the 95 % Wilson interval of a share, given hits out of n.
func wilson(hits, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964
	p, all := float64(hits)/float64(n), float64(n)
	middle := (p + z*z/(2*all)) / (1 + z*z/all)
	half := z / (1 + z*z/all) * math.Sqrt(p*(1-p)/all+z*z/(4*all*all))
	return max(0, middle-half), min(1, middle+half)
}

// poisson returns the exact 95 % interval of the mean of a Poisson distribution after n events. Without events, the
// upper bound is 3, the one-sided bound at 95 %.
func poisson(n int) (low, high float64) {
	if n == 0 {
		return 0, 3
	}
	return solve(n-1, 0.975), solve(n, 0.025)
}

// solve returns the mean at which the probability of n or fewer events has the given value.
func solve(n int, probability float64) float64 {
	low, high := 0.0, float64(n)+10*math.Sqrt(float64(n)+1)+10
	for range 100 {
		if middle := (low + high) / 2; atMost(n, middle) > probability {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// atMost returns the probability of n or fewer events.
func atMost(n int, mean float64) float64 {
	term := -mean // logarithm of the probability of exactly k events
	sum := math.Exp(term)
	for k := 1; k <= n; k++ {
		term += math.Log(mean) - math.Log(float64(k))
		sum += math.Exp(term)
	}
	return sum
}
