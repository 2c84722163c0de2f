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

// Publisher tells what every round has seen and decided. The loop shows it each round and publishes it; what was shown
// last is for everybody at once.
type Publisher struct {
	opt      Options
	keys     record.Keys
	log      *slog.Logger
	files    *hoststate.State
	journal  *Journal
	metrics  *Metrics
	presence *presence
	fsyncs   fsyncs
	trimmed  time.Duration // when the history was last trimmed for the queue's keeper
	last     policy.Decision
	unmuted  []health.MuteEnd // that were told

	current atomic.Pointer[round.Round]
	reached atomic.Pointer[round.Round] // the last one in which the cluster was reachable
	shown   bell                        // rung when there is a new one
}

// New makes one that has published nothing yet.
func New(opt Options, keys record.Keys, files *hoststate.State) *Publisher {
	return &Publisher{
		opt: opt, keys: keys, log: opt.Logger, files: files, journal: NewJournal(opt, keys),
		metrics: NewMetrics(opt.Probe, opt.Now), presence: newPresence(opt, keys, files),
	}
}

// Journal gives the history.
func (p *Publisher) Journal() *Journal { return p.journal }

// Metrics gives the metrics, for a registry.
func (p *Publisher) Metrics() *Metrics { return p.metrics }

// Current gives the round that was shown last, or nil.
func (p *Publisher) Current() *round.Round { return p.current.Load() }

// Revision returns the number of the round that was shown last, or 0.
func (p *Publisher) Revision() uint64 {
	if r := p.current.Load(); r != nil {
		return r.Number
	}
	return 0
}

// Reached gives the last round that was shown in which the cluster was reachable, or nil.
func (p *Publisher) Reached() *round.Round { return p.reached.Load() }

// Next gives a channel that is closed when the next round is shown.
func (p *Publisher) Next() <-chan struct{} { return p.shown.rung() }

// Show makes a round the picture that everybody gets from now on. Nobody may change it any more.
func (p *Publisher) Show(r *round.Round) {
	if r.View.Cluster.Reachable {
		p.reached.Store(r)
	}
	p.tellUnreadable(r)
	p.fsyncs.add(r.Wall, r.Reading)
	p.current.Store(r)
	p.shown.ring()
}

// publishCalls is for how many calls etcd is told of a round, at most: where each takes as long as it may, the next
// look must not wait for all of them. What was not written is the next time.
const publishCalls = 2

// Publish tells people and the other hosts what the round that was shown has seen and decided.
func (p *Publisher) Publish(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, publishCalls*p.opt.Config.Timing.CallTimeout)
	defer cancel()
	before := p.last
	p.last = r.Decision
	p.tellReason(before, r.Decision)
	p.caution(before, r.Decision)
	p.tellMutes(r)
	if r.View.Cluster.Foreign() { // another's cluster is not written to
		return
	}
	if !r.View.Cluster.Reachable {
		p.presence.word(ctx, r)
		return
	}
	p.presence.publish(ctx, r)
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

// Completed tells of a step that has come to its end in this round, and of the operation that it has ended.
func (p *Publisher) Completed(ctx context.Context, now *round.Round, done round.Completion) {
	p.metrics.Completed(done)
	p.journal.Completed(ctx, now, done)
}

// Leave is an orderly end: what etcd is still to store is stored, and this host's record taken back.
func (p *Publisher) Leave(ctx context.Context) {
	if r := p.reached.Load(); r != nil && p.journal.Waiting() && !r.View.Cluster.Foreign() {
		p.journal.Store(ctx, r.Revision)
	}
	p.presence.leave(ctx)
}

// tellReason logs and counts why no step is taken, when that is another reason than before.
func (p *Publisher) tellReason(before, d policy.Decision) {
	if d.Step.Kind != policy.StepNone || len(d.Reasons) == 0 {
		return
	}
	if first := d.Reasons[0]; len(before.Reasons) == 0 || first.Code != before.Reasons[0].Code {
		p.log.Info("waiting", "code", first.Code, "text", first.Text)
		p.metrics.Refused(first.Code)
	}
}

// caution logs what has come up beside the reason. Status shows it for as long as it is so.
func (p *Publisher) caution(before, d policy.Decision) {
	known := before.Cautions()
	for _, r := range d.Cautions() {
		if !slices.ContainsFunc(known, func(b policy.Reason) bool { return b.Code == r.Code }) {
			p.log.Warn("needs attention", "code", r.Code, "text", r.Text)
		}
	}
}

// waitingText says with numbers what the host waits for, or in general if the decision has a step
// and no reasons.
func waitingText(d policy.Decision) string {
	for _, reason := range d.Reasons {
		if reason.Code == d.Waiting {
			return reason.Text
		}
	}
	return d.Waiting.Info().Meaning
}

// tellUnreadable logs each record when it turns out that it cannot be read.
func (p *Publisher) tellUnreadable(r *round.Round) {
	before := p.current.Load()
	for _, u := range r.Unreadable {
		if before == nil || !slices.Contains(before.Unreadable, u) {
			p.log.Error("cannot read a record in etcd", "code", policy.RecordUnreadable, "key", u.Key, "why", u.Why,
				"remedy", u.Hint())
		}
	}
}
