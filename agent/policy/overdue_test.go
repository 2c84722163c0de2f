// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAMaintenanceThatLastsTooLongIsToldToTheOtherHosts(t *testing.T) {
	t.Parallel()
	v := downView()
	if got := Decide(v).Waiting; got != InMaintenance {
		t.Errorf("in time: it waits for %q", got)
	}
	v.Asked.Overdue = true
	if got := Decide(v).Waiting; got != MaintenanceOverdue {
		t.Errorf("overdue: it waits for %q", got)
	}
	v.Asked = nil
	if got := Decide(v).Waiting; got == InMaintenance || got == MaintenanceOverdue {
		t.Errorf("when nothing is asked it waits for %q", got)
	}
}
