// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// now gives the status, which must not be waited for.
func (h *host) now() control.Status {
	h.w.t.Helper()
	s, ok := h.status()
	if !ok {
		h.w.t.Fatalf("the agent of %s does not answer", h.Options.Name)
	}
	return s
}

func TestWhatACommandHasChangedIsWhatTheNextCommandShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 1, voters: 1, set: quickTimes(), each: func(_ int, o *testbed.HostOptions) {
		o.Set["timing.interval"], o.Set["timing.renewEvery"], o.Set["timing.presenceTTL"] = "1s", "1s", "4s" // nobody sees it by luck
	}})
	w.start()
	w.bootstrap()
	n1 := w.hosts[0]
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	try := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		try(n1.Client.Pause(ctx, control.PauseRequest{Reason: "a look", For: time.Hour}))
		if s := n1.now(); s.Pause == nil {
			t.Error("the pause does not show")
		}
		try(n1.Client.Resume(ctx))
		if s := n1.now(); s.Pause != nil {
			t.Error("the pause that was ended shows")
		}
		r, err := n1.Client.StartRollout(ctx, control.RolloutRequest{Work: control.WorkRestart, Reason: "a test"})
		try(r, err)
		if s := n1.now(); s.Rollout == nil || s.Rollout.ID != r.ID || s.Rollout.State != control.RolloutRunning {
			t.Errorf("the rollout %s was started, and this shows: %+v", r.ID, s.Rollout)
		}
		try(n1.Client.SetRollout(ctx, control.RolloutAborted))
		if s := n1.now(); s.Rollout.State != control.RolloutAborted {
			t.Errorf("the rollout was aborted, and is %s", s.Rollout.State)
		}
		try(n1.Client.EndMaintenance(ctx))
		if s := n1.now(); s.Maintenance != nil {
			t.Errorf("what was withdrawn is asked for: %+v", s.Maintenance)
		}
	}
}
