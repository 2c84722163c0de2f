// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import "math"

// grades is how many times a thing may become twice as bad, and half as bad, on the scale of [Finding.Grade].
const grades = 64

// grade says how bad a value is: one more for each time that it is twice as bad. Where it is bad to be below a limit,
// half is twice as bad; of a part of a whole so is half of what is left. What is within the limit is graded as if it
// were at it. No grade is 0.
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
