// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestARepeatedlyFailingStepPushesNothingOutOfTheHistory(t *testing.T) {
	t.Parallel()
	j := NewJournal(Options{Wall: time.Now, Logger: slog.New(slog.DiscardHandler)}, record.KeysFor("test"))
	full, slow := errors.New("its database is full"), errors.New("no answer in time")
	rollBack := policy.Step{Kind: policy.StepRollBack, Outcome: policy.JoinTimedOut}
	begun := policy.Step{Kind: policy.StepSetPhase, Phase: policy.PhaseBegun}
	added := policy.Step{Kind: policy.StepSetPhase, Phase: policy.PhaseAdded}
	for _, c := range []struct {
		name  string
		step  policy.Step
		why   string
		err   error
		lines int
	}{
		{"a step", begun, "", nil, 1},
		{"one that fails", rollBack, "it has lasted 61s", full, 2},
		{"and again, later", rollBack, "it has lasted 63s", full, 2},
		{"and once more", rollBack, "it has lasted 1h5m", full, 2},
		{"in another way", rollBack, "it has lasted 1h6m", slow, 3},
		{"as before", rollBack, "it has lasted 1h7m", full, 4},
		{"another step in that way", begun, "", full, 5},
		{"and with another phase", added, "", full, 6},
		{"it is taken", added, "", nil, 7},
		{"and fails after that", added, "", full, 8},
	} {
		c.step.Why = c.why
		j.Completed(t.Context(), &round.Round{}, round.Completion{Step: c.step, On: &round.Round{}, Err: c.err})
		if len(j.lines) != c.lines || len(j.pending) != c.lines {
			t.Fatalf("%s: %d lines, %d of them waiting; want %d", c.name, len(j.lines), len(j.pending), c.lines)
		}
	}
	if first := j.lines[1].Text; !strings.Contains(first, "61s") {
		t.Errorf("it says %q, and not when it began", first)
	}
}
