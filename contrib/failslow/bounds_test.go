// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
)

func TestWilsonBoundsHaveTheKnownValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hits, n   int
		low, high float64
	}{
		{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {95, 100, 0.8882, 0.9785}, {0, 0, 0, 1},
	} {
		if low, high := wilson(c.hits, c.n); far(low, c.low) || far(high, c.high) {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", c.hits, c.n, low, high, c.low, c.high)
		}
	}
}

func TestPoissonBoundsHaveTheKnownValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n         int
		low, high float64
	}{
		{0, 0, 3}, {1, 0.0253, 5.5716}, {5, 1.6235, 11.6683}, {10, 4.7954, 18.3904}, {100, 81.3640, 121.6268},
	} {
		if low, high := poisson(c.n); far(low, c.low) || far(high, c.high) {
			t.Errorf("%d events: %.4f to %.4f, want %.4f to %.4f", c.n, low, high, c.low, c.high)
		}
	}
}

func far(a, b float64) bool { return math.Abs(a-b) > 0.0002 }
