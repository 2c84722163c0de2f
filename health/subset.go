// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
)

// NewOf returns a judge with only the named checks, and without attribution of causes. It is meant for simulations of
// single checks over long times; an agent uses [New].
func NewOf(t Thresholds, names ...string) (*Judge, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("invalid thresholds: %w", err)
	}
	var some []declaration
	compared := newComparison(t)
	for _, d := range declarations(t, compared) {
		if slices.Contains(names, d.Name) {
			some = append(some, d)
		}
	}
	if len(some) != len(names) {
		return nil, fmt.Errorf("invalid checks: of %v, %d exist", names, len(some))
	}
	j, err := judgeBy(some)
	if err != nil {
		return nil, err
	}
	j.compared, j.causeless = compared, true
	return j, nil
}
