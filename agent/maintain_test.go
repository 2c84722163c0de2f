// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

func TestWhoAsksIsAnsweredThoughTheDiskHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, usualPace())
		defer f.close()
		f.pass(time.Minute)
		h, hang := f.hosts["s0000"], make(chan struct{})
		h.mu.Lock()
		h.hang = hang
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		req := control.MaintenanceRequest{Work: control.WorkMaintenance, Reason: "a test", For: time.Hour}
		began := time.Now()
		_, err := h.agent.AskMaintenance(ctx, req, "root")
		if err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("the answer is %v", err)
		}
		if err := h.agent.EndMaintenance(ctx, "root"); err == nil {
			t.Error("the end was accepted, though nothing can be noted")
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the answer took %s", took)
		}
		close(hang)
		f.until(time.Minute, "what was asked is noted and withdrawn", func() bool {
			s := h.agent.Status()
			return s.Maintenance == nil && s.LastMaintenance != nil
		})
	})
}
