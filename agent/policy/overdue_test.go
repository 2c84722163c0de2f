// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestAnOverdueMaintenanceIsReportedByTheOtherHosts(t *testing.T) {
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
		t.Errorf("without a request it waits for %q", got)
	}
}

func TestAnOverdueOperationIsReportedByEveryHost(t *testing.T) {
	t.Parallel()
	v := askedView()
	v.Op = &Op{Kind: KindCycle, Host: "n2", HostName: "n2", Phase: PhaseDown, OrphanedFor: time.Hour}
	const inTime = "cycle of n2 is in phase down"
	if got := Decide(v).Reasons[0]; got != (Reason{OperationInFlight, inTime}) {
		t.Errorf("in time: %v", got)
	}
	v.Op.Overdue = true
	if got := Decide(v).Reasons[0]; got != (Reason{OperationInFlight, inTime + ", and has exceeded its announced " +
		"duration"}) {
		t.Errorf("overdue: %v", got)
	}
}

func TestAHostPublishesAnExtendedTimeLimit(t *testing.T) {
	t.Parallel()
	v := downView()
	v.Asked.RecordDiffers = true
	if got := Decide(v).Step; got.Kind != StepSetPhase || got.Phase != PhaseDown {
		t.Errorf("it takes the step %v", got)
	}
}

func TestAQueuedHostIsNotReportedInMaintenance(t *testing.T) {
	t.Parallel()
	v := askedView()
	if got := Decide(v).Waiting; got != CycleQueued {
		t.Errorf("before its operation it waits for %q", got)
	}
	if text, holds := awaitsTurn(v); !holds || !strings.Contains(text, "queued: ") {
		t.Errorf("a queued request is reported as %q", text)
	}
}
