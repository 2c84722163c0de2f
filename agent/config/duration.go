// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"math"
	"strings"
	"time"
)

// ParseDuration extends time.ParseDuration with days of 24 hours, which come first: 2d, 1d12h, 0.5d. The command line
// reads durations in the same way.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	sign, digits := "", strings.TrimPrefix(days, "+")
	if after, is := strings.CutPrefix(days, "-"); is {
		sign, digits = "-", after
	}
	if strings.Trim(digits, "0123456789.") != "" || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, errors.New("not a duration")
	}
	value, err := time.ParseDuration(digits + "h")
	if err != nil {
		return 0, err
	}
	if value > math.MaxInt64/24 {
		return 0, errors.New("out of range")
	}
	value *= 24
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, err
		}
		if value > math.MaxInt64-more {
			return 0, errors.New("out of range")
		}
		value += more
	}
	if sign != "" {
		value = -value
	}
	return value, nil
}
