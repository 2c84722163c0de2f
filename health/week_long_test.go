// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package health

import (
	"strings"
	"testing"
)

func TestAWeekOfHealthyMachinesRaisesNoGatingAlarmAndFewOthers(t *testing.T) {
	t.Parallel()
	pages := make([]string, len(healthyMachines())+1)
	t.Run("machines", func(t *testing.T) {
		for i, m := range healthyMachines() {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				pages[i] = lifeOf(t, m.name, m.lives(uint64(i)), week)
			})
		}
		t.Run(recordedName, func(t *testing.T) {
			t.Parallel()
			pages[len(pages)-1] = lifeOf(t, recordedName, recorded(t).live, week)
		})
	})
	golden(t, "testdata/week.golden", strings.Join(pages, "\n"))
}
