// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"strings"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Completed counts a completed step and the operation that it ended.
func (m *Metrics) Completed(c round.Completion) {
	result := record.StepOK
	if c.Err != nil {
		result = record.StepError
	}
	m.steps.WithLabelValues(string(c.Step.Kind), result).Inc()
	if c.Ended != nil {
		m.operation(policy.ReasonCode(c.Ended.Outcome))
	}
}

// Completed adds the result of a step to the history. now is the round in which the step ended. If that round has read
// from this host's own cluster, Completed stores the line immediately; otherwise a later round does.
func (j *Journal) Completed(ctx context.Context, now *round.Round, c round.Completion) {
	if c.Ended != nil {
		j.keep(c.On.Revision, *c.Ended)
		j.Trim(ctx)
	}
	if c.Unsaid {
		return
	}
	e := Entry{Kind: "step", Code: string(c.Step.Kind), Outcome: record.StepOK, Text: c.Step.Text()}
	if c.Err != nil {
		if j.failsAgain(c.Step, c.Err) {
			return
		}
		e.Outcome, e.Text = record.StepError, record.FailedStep+e.Text+": "+c.Err.Error()
	}
	if now.EtcdAt == now.At && now.View.Cluster.Reachable && !now.View.Cluster.Foreign() {
		j.Write(ctx, now.Revision, e)
		return
	}
	j.Note(0, e)
}

// failsAgain reports whether this host's last line is the same failure of the same step. It ignores the step's reason,
// which may contain times and differ in every round. Otherwise the repeated lines would push all other lines out of the
// history.
func (j *Journal) failsAgain(step policy.Step, err error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		return false
	}
	step.Why = ""
	last := j.lines[len(j.lines)-1]
	return last.Kind == "step" && last.Code == string(step.Kind) && last.Outcome == record.StepError &&
		strings.HasPrefix(last.Text, record.FailedStep+step.Text()) && strings.HasSuffix(last.Text, ": "+err.Error())
}
