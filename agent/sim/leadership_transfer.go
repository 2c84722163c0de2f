// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// slowForSure is how long a disk must be slow before its host's agent has certainly published that.
const slowForSure = 5 * time.Minute

// beforeTransfer checks the target of a leadership transfer when the transfer begins.
func (p *promises) beforeTransfer(by *process, step policy.Step) {
	w, m := p.w, p.w.etcd.find(step.MemberID)
	w.counts.Transfers++
	if m == nil || m.learner {
		if w.now()-w.etcd.membersChangedAt > p.staleness() {
			p.breach("P2", by.host, "leadership is transferred to a non-voter")
		}
		return
	}
	op, own := p.currentOp(), by.host.config.Host.ID
	switch d := m.host.disk; {
	case m.downAt != 0 && w.now()-m.downAt > p.staleness():
		p.breach("P2", by.host, fmt.Sprintf("leadership is transferred to %s, which has been down for %s",
			m.host.name, (w.now()-m.downAt).Round(time.Second)))
	case d.slow() && w.now()-d.since > slowForSure && p.publishes(m.host, health.Slow):
		p.breach("P6", by.host, fmt.Sprintf("leadership is transferred to %s, whose disk has been slow for %s",
			m.host.name, (w.now()-d.since).Round(time.Second)))
	case op != nil && w.now()-p.opSince > p.staleness() && !p.justIntruded() &&
		(op.Host == own || op.Host == m.host.config.Host.ID || uint64(op.MemberID) == m.id):
		p.breach("P1", by.host, fmt.Sprintf("leadership is transferred from %s to %s during the operation of %s",
			by.host.name, m.host.name, op.HostName))
	}
}

// publishes reports whether a host's record has that health state. An agent that was frozen may overwrite the record
// with an old state.
func (p *promises) publishes(h *host, state health.State) bool {
	kv := p.w.etcd.store.Get(p.w.keys.Host(h.config.Host.ID))
	if kv == nil {
		return false
	}
	r, err := record.Decode[record.Host](kv.Value)
	return err == nil && r.Health == state.String()
}

// noAnswers is an etcd whose members do not report their own state.
type noAnswers struct{ cluster.Etcd }

func (s *noAnswers) Answers(context.Context, []cluster.Member) map[uint64]cluster.Status { return nil }

// othersHealthy shows every other host as healthy.
type othersHealthy struct {
	cluster.Etcd
	own string
}

func (r *othersHealthy) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := r.Etcd.Read(ctx, spans...)
	for i, pair := range out.Pairs {
		if bytes.Contains(pair.Value, []byte(`"health"`)) && !strings.HasSuffix(pair.Key, r.own) {
			for _, state := range []string{"WARM", "SLOW", "STALLED", "FAILED"} {
				pair.Value = bytes.ReplaceAll(pair.Value, []byte(`"health":"`+state+`"`), []byte(`"health":"OK"`))
			}
			out.Pairs[i].Value = pair.Value
		}
	}
	return out, err
}
