// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"math/big"
	"testing"
)

func TestTripHasTheKnownValues(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{60: 5, 120: 7, 300: 11, 600: 16, 900: 20, 3600: 57} {
		if got := trip(n); got != want {
			t.Errorf("trip(%d) is %d, want %d", n, got, want)
		}
	}
}

// TestTripIsTheFewestThatChanceDoesNotExplain computes the binomial tail in a different way, with exact fractions.
func TestTripIsTheFewestThatChanceDoesNotExplain(t *testing.T) {
	t.Parallel()
	limit := big.NewRat(1, 1000)
	for _, n := range []int{2, 3, 5, 6, 20, 30, 31, 59, 90, 100, 300, 450} {
		k := trip(n)
		if tail(n, k).Cmp(limit) > 0 || tail(n, k-1).Cmp(limit) <= 0 {
			t.Errorf("trip(%d) is %d, where the tails are %s, and %s for one less", n, k, tail(n, k).FloatString(6),
				tail(n, k-1).FloatString(6))
		}
	}
}

// tail returns the probability that k or more of n events occur, each with a probability of 1 %.
func tail(n, k int) *big.Rat {
	sum := new(big.Rat)
	for i := k; i <= n; i++ {
		ways := new(big.Int).Binomial(int64(n), int64(i))
		other := new(big.Int).Exp(big.NewInt(99), big.NewInt(int64(n-i)), nil)
		all := new(big.Int).Exp(big.NewInt(100), big.NewInt(int64(n)), nil)
		sum.Add(sum, new(big.Rat).SetFrac(ways.Mul(ways, other), all))
	}
	return sum
}

func TestOneSampleProvesNothing(t *testing.T) {
	t.Parallel()
	if trip(0) != 1 || trip(1) != 2 {
		t.Errorf("trip(0) is %d and trip(1) is %d, which is reachable", trip(0), trip(1))
	}
}

func TestTripOfALargeWindowStaysNearItsShare(t *testing.T) {
	t.Parallel()
	// 0.99^300000 underflows a float64; the normal approximation is 3000 + 3.09 x sqrt(2970) = 3168.
	if got := trip(300_000); got < 3165 || got > 3175 {
		t.Errorf("trip(300000) is %d", got)
	}
}
