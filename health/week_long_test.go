// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package health

import (
	"strings"
	"testing"
)

func TestAWeekOfHealthyMachinesRaisesNoAlarmThatGatesAndHardlyAnyOther(t *testing.T) {
	t.Parallel()
	pages := make([]string, len(healthyMachines()))
	t.Run("machines", func(t *testing.T) {
		for i, m := range healthyMachines() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				pages[i] = lifeOf(t, m, uint64(i), week)
			})
		}
	})
	golden(t, "testdata/week.golden", strings.Join(pages, "\n"))
}
