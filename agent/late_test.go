// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/policy"
)

// stepsTaken reads quorumd_steps_total.
func stepsTaken(t *testing.T, a *Agent, kind policy.StepKind, result string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(a.Metrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if family.GetName() == "quorumd_steps_total" && slices.Equal(labels, []string{result, string(kind)}) {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no series of %s, %s", kind, result)
	return 0
}

// hangs requests maintenance of v2 and makes the step that stops v2's etcd hang beyond its time limit.
func (f *fleet) hangs() *fleetHost {
	f.t.Helper()
	h := f.hosts["v2"]
	h.mu.Lock()
	h.late = make(chan error)
	h.mu.Unlock()
	f.ask("v2")
	f.until(5*time.Minute, "the step is reported as hanging", func() bool {
		s := h.agent.Status()
		return len(s.Reasons) > 0 && s.Reasons[0].Code == string(policy.StepStuck)
	})
	return h
}

// comesBack ends the hanging step. Later steps do not hang.
func (h *fleetHost) comesBack(err error) {
	h.mu.Lock()
	late := h.late
	h.late = nil
	h.mu.Unlock()
	late <- err
}

func TestALateStepIsCountedAndRecordedLikeAnyOther(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		h := f.hangs()
		if n := stepsTaken(t, h.agent, policy.StepTakeDown, "ok"); n != 0 {
			t.Fatalf("%v steps are counted before they have returned", n)
		}
		steps := h.agent.Status().Loop.Steps
		h.comesBack(nil)
		f.until(time.Minute, "v2 is safe to touch", func() bool { return f.state("v2") == "safe" })
		f.pass(time.Minute)
		if n := stepsTaken(t, h.agent, policy.StepTakeDown, "ok"); n != 1 {
			t.Errorf("it is counted %v times", n)
		}
		if now := h.agent.Status().Loop.Steps; now <= steps {
			t.Errorf("%d steps before, %d after", steps, now)
		}
		f.saidOnce("stopping etcd")
	})
}

func TestALateFailureOfAStepIsRecordedWithItsCause(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		h := f.hangs()
		h.comesBack(errors.New("systemd has not answered"))
		f.until(time.Minute, "it is repeated", func() bool { return f.state("v2") == "safe" })
		f.pass(time.Minute)
		if failed, ok := stepsTaken(t, h.agent, policy.StepTakeDown, "error"),
			stepsTaken(t, h.agent, policy.StepTakeDown, "ok"); failed != 1 || ok != 1 {
			t.Errorf("%v have failed and %v succeeded, want one and one", failed, ok)
		}
		f.saidOnce("failed: stopping etcd")
		f.saidOnce("systemd has not answered")
	})
}

// saidOnce checks that exactly one history line in etcd contains a text.
func (f *fleet) saidOnce(text string) {
	f.t.Helper()
	lines := stored(f.t, f.etcd)
	n := 0
	for _, l := range lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	if n != 1 {
		f.t.Errorf("%d lines hold %q, want 1:\n%s", n, text, strings.Join(lines, "\n"))
	}
}
