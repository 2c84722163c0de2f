// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestWaitEndsWhenTheConditionHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		condition string
		set       func(*control.Status)
	}{
		{"ready", func(s *control.Status) { s.Cluster.Reachable = true }},
		{"voter", func(s *control.Status) { s.Role = policy.RoleVoter }},
		{"member", func(s *control.Status) { s.Role = policy.RoleStandby }},
		{"health=OK", func(s *control.Status) { s.Health.State = "OK" }},
		{"health=SLOW", func(s *control.Status) { s.Health.State = "SLOW" }},
	} {
		t.Run(c.condition, func(t *testing.T) {
			t.Parallel()
			d := scene(t, "fresh")
			d.onRead = func(look int, s *control.Status) {
				if look == 3 {
					c.set(s)
				}
			}
			socket, _ := serve(t, d)
			r := quorumctl(t, socket, "wait", "--for", c.condition, "--timeout", "30s")
			d.mu.Lock()
			defer d.mu.Unlock()
			if r.code != exitOK || !strings.HasPrefix(r.stdout, c.condition+": n1 is ") || d.reads != 3 {
				t.Errorf("exit %d after %d looks: %s%s", r.code, d.reads, r.stdout, r.stderr)
			}
		})
	}
}

func TestWaitTimeoutReportsTheLastState(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "slow"))
	golden(t, "wait.golden", transcript(t, socket,
		"wait", "wait --for voter --timeout 1500ms", "wait --for health=QUALIFYING"))
}

func TestWaitOutlastsADaemonThatStartsLate(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	r := quorumctl(t, socket, "wait", "--timeout", "2500ms") // longer than the client's own timeout
	if r.code != exitTimeout || !strings.Contains(r.stderr, "cannot reach quorumd at "+socket) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

func TestInterruptedWaitFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := scene(t, "slow")
	d.onRead = func(look int, _ *control.Status) {
		if look == 2 {
			cancel()
		}
	}
	socket, _ := serve(t, d)
	var out, errOut bytes.Buffer
	if code := run(ctx, []string{"--socket", socket, "wait", "--for", "voter"}, &out, &errOut); code != exitFault {
		t.Errorf("exit %d: %s", code, &errOut)
	}
	if !strings.Contains(errOut.String(), "interrupted") {
		t.Errorf("got %s", &errOut)
	}
}
