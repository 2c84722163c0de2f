// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "math"

// grades bounds the binary logarithm from which [Finding.Grade] is calculated, in both directions.
const grades = 64

// grade returns how bad a value is: one more for each time that it becomes twice as bad. For an upper limit, twice the
// value is twice as bad. For a lower limit, half the value is twice as bad. A percentage p counts as p/(100-p), so that
// near 100 %, half the remainder is twice as bad. A value within the limit is graded as if it were at the limit. The
// result is at least 1, because 0 means no grade.
func (l Limit) grade(value float64) float64 {
	if l.Below {
		value = min(value, l.Enter)
	} else {
		value = max(value, l.Enter)
	}
	if l.Unit == "%" {
		value /= max(100-value, 0)
	}
	twice := math.Log2(value)
	if l.Below {
		twice = -twice
	}
	return 1 + grades + min(max(twice, -grades), grades)
}
