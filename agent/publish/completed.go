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

// Completed counts a step that has come to its end, and the operation that it has ended.
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

// Completed tells how a step went that has come to its end in this round, which may not be the one in which it was
// decided: at once, if this round has asked the cluster that this host belongs to, or else when one has.
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

// failsAgain tells whether the last line of this host says that this step has failed, and in the same way. Why it is
// taken may tell of times, and be another text in every round: it would drive all else out of the history.
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
