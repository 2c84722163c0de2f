// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Publisher publishes what every round has observed and decided. The loop calls Show and Publish for each round. Other
// goroutines may read the last shown round concurrently.
type Publisher struct {
	opt        Options
	keys       record.Keys
	log        *slog.Logger
	files      *hoststate.State
	journal    *Journal
	metrics    *Metrics
	hostRecord *hostRecord
	fsyncs     fsyncs
	trimmed    time.Duration // when this host last trimmed the history, because it maintains the queue
	last       policy.Decision
	unmuted    []health.MuteEnd // ended mutes that were already reported

	current atomic.Pointer[round.Round]
	reached atomic.Pointer[round.Round] // the last round in which the cluster was reachable
	shown   broadcast                   // sent when a round is shown
}

// New returns a Publisher that has published nothing yet.
func New(opt Options, keys record.Keys, files *hoststate.State) *Publisher {
	return &Publisher{
		opt: opt, keys: keys, log: opt.Logger, files: files, journal: NewJournal(opt, keys),
		metrics: NewMetrics(opt.Probe, opt.Now), hostRecord: newHostRecord(opt, keys, files),
	}
}

// Journal returns the history.
func (p *Publisher) Journal() *Journal { return p.journal }

// Metrics returns the metrics, for a registry.
func (p *Publisher) Metrics() *Metrics { return p.metrics }

// Current returns the last round shown, or nil.
func (p *Publisher) Current() *round.Round { return p.current.Load() }

// Revision returns the number of the last round shown, or 0.
func (p *Publisher) Revision() uint64 {
	if r := p.current.Load(); r != nil {
		return r.Number
	}
	return 0
}

// Reached returns the last round shown in which the cluster was reachable, or nil.
func (p *Publisher) Reached() *round.Round { return p.reached.Load() }

// Next returns a channel that is closed when the next round is shown.
func (p *Publisher) Next() <-chan struct{} { return p.shown.wait() }

// Show makes a round the current one for all readers. The round must not be changed afterwards.
func (p *Publisher) Show(r *round.Round) {
	if r.View.Cluster.Reachable {
		p.reached.Store(r)
	}
	p.reportUnreadable(r)
	p.fsyncs.add(r.Wall, r.Reading)
	p.current.Store(r)
	p.shown.send()
}

// publishCalls limits the time for publishing a round, in call timeouts, so that slow calls do not delay the next round
// for long. The next round writes what is still unwritten.
const publishCalls = 2

// Publish publishes the round's observations and decision to operators and to the other hosts.
func (p *Publisher) Publish(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, publishCalls*p.opt.Config.Timing.CallTimeout)
	defer cancel()
	before := p.last
	p.last = r.Decision
	p.reportReason(before, r.Decision)
	p.caution(before, r.Decision)
	p.reportEndedMutes(r)
	if r.View.Cluster.Foreign() { // never write to another cluster
		return
	}
	p.reportTransfer(r)
	if !r.View.Cluster.Reachable {
		p.hostRecord.publishHealth(ctx, r)
		return
	}
	p.hostRecord.publish(ctx, r)
	if r.EtcdAt == r.At && p.journal.Waiting() {
		p.journal.Store(ctx, r.Revision)
	}
	p.keepQueue(ctx, r)
	if r.Decision.Waiting != before.Waiting && r.Decision.Waiting != "" && r.Decision.Role == policy.RoleSpare {
		p.journal.Write(ctx, r.Revision, Entry{
			Kind: "refusal", Code: string(r.Decision.Waiting), Text: waitingText(r.Decision),
		})
	}
}

// Completed publishes a step that ended in the round now, and the operation that the step ended.
func (p *Publisher) Completed(ctx context.Context, now *round.Round, done round.Completion) {
	p.metrics.Completed(done)
	p.journal.Completed(ctx, now, done)
}

// Leave ends publishing: it stores the queued lines, then deletes this host's record.
func (p *Publisher) Leave(ctx context.Context) {
	if r := p.reached.Load(); r != nil && p.journal.Waiting() && !r.View.Cluster.Foreign() {
		p.journal.Store(ctx, r.Revision)
	}
	p.hostRecord.leave(ctx)
}

// reportReason logs and counts why no step is taken, if the reason has changed.
func (p *Publisher) reportReason(before, d policy.Decision) {
	if d.Step.Kind != policy.StepNone || len(d.Reasons) == 0 {
		return
	}
	if first := d.Reasons[0]; len(before.Reasons) == 0 || first.Code != before.Reasons[0].Code {
		p.log.Info("waiting", "code", first.Code, "text", first.Text)
		p.metrics.Refused(first.Code)
	}
}

// caution logs each new reason that needs attention but blocks nothing. Status shows the reason while it lasts.
func (p *Publisher) caution(before, d policy.Decision) {
	known := before.Cautions()
	for _, r := range d.Cautions() {
		if !slices.ContainsFunc(known, func(b policy.Reason) bool { return b.Code == r.Code }) {
			p.log.Warn("needs attention", "code", r.Code, "text", r.Text)
		}
	}
}

// waitingText returns the text of the reason for which the host waits, or that reason's meaning if the decision's
// reasons do not include it.
func waitingText(d policy.Decision) string {
	for _, reason := range d.Reasons {
		if reason.Code == d.Waiting {
			return reason.Text
		}
	}
	return d.Waiting.Info().Meaning
}

// reportUnreadable logs each record once when it is found unreadable.
func (p *Publisher) reportUnreadable(r *round.Round) {
	before := p.current.Load()
	for _, u := range r.Unreadable {
		if before == nil || !slices.Contains(before.Unreadable, u) {
			p.log.Error("cannot read a record in etcd", "code", policy.RecordUnreadable, "key", u.Key, "why", u.Why,
				"remedy", u.Hint())
		}
	}
}
