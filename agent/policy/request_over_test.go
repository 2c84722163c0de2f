// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAMissingOperationWasReleasedOrItsRecordDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen, recorded, otherCluster, byOperator bool
		released, noted                          bool
	}{
		"its record was deleted":                      {seen: true, noted: true},
		"an operator has ended it":                    {seen: true, byOperator: true, released: true},
		"the endpoints belong to a different cluster": {seen: true, otherCluster: true, released: true},
		"it is in flight":                             {seen: true, recorded: true, byOperator: true},
		"it was never in flight":                      {byOperator: true, otherCluster: true},
		"it is in flight, and was not observed":       {recorded: true},
	} {
		released, noted := Request{Seen: c.seen}.Gone(c.recorded, c.otherCluster, c.byOperator)
		if released != c.released || noted != c.noted {
			t.Errorf("%s: released %t, noted %t", name, released, noted)
		}
	}
}

func TestARequestIsOverByAnOperatorOrByItsReboot(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		s                                    Request
		done, tooLate, untouched, outlasting bool
	}{
		"it is queued": {s: Request{Work: WorkReboot}, untouched: true, outlasting: true},
		"the machine reboots before its operation": {
			s: Request{Work: WorkReboot, OtherBoot: true}, untouched: true, outlasting: true,
		},
		"a restart waits": {s: Request{Work: WorkRestart}, untouched: true},
		"a command waits": {s: Request{Work: WorkCommand}, untouched: true},
		"maintenance waits": {
			s: Request{Work: WorkMaintenance}, untouched: true, outlasting: true,
		},
		"its operation has begun":                  {s: Request{Work: WorkReboot, Begun: true}, outlasting: true},
		"etcd was stopped for a missing operation": {s: Request{Work: WorkRestart, Stopped: true}},
		"the machine has rebooted": {
			s: Request{Work: WorkReboot, Begun: true, OtherBoot: true}, done: true, outlasting: true,
		},
		"the machine has rebooted during a restart": {s: Request{Work: WorkRestart, Begun: true, OtherBoot: true}},
		"the machine has rebooted during a command": {s: Request{Work: WorkCommand, Begun: true, OtherBoot: true}},
		"the machine has rebooted during maintenance": {
			s: Request{Work: WorkMaintenance, Begun: true, OtherBoot: true}, outlasting: true,
		},
		"an operator has ended it": {s: Request{Work: WorkMaintenance, Begun: true, Ended: true}, done: true},
		"an external reboot has happened before its operation": {
			s:       Request{Work: WorkReboot, External: true, OtherBoot: true},
			tooLate: true, untouched: true, outlasting: true,
		},
		"an external reboot has happened in its operation": {
			s: Request{Work: WorkReboot, External: true, Begun: true, OtherBoot: true}, done: true, outlasting: true,
		},
	} {
		if c.s.Done() != c.done || c.s.TooLate() != c.tooLate || c.s.Untouched() != c.untouched ||
			c.s.OutlastsReboot() != c.outlasting {
			t.Errorf("%s: done %t, too late %t, untouched %t, outlasts a reboot %t", what, c.s.Done(), c.s.TooLate(),
				c.s.Untouched(), c.s.OutlastsReboot())
		}
		if a := c.s.Asked(); a.Over != (c.done || c.tooLate) || a.Done() != c.done || a.Ended != c.s.Ended ||
			a.Begun != c.s.Begun {
			t.Errorf("%s: the view is %+v", what, a)
		}
	}
}
