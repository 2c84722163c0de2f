// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// slowForSure is after how long the agent of a host whose disk is slow has told so.
const slowForSure = 5 * time.Minute

// beforeGiveWay judges that a leader hands over, and to whom, when it begins.
func (p *promises) beforeGiveWay(by *process, step policy.Step) {
	w, m := p.w, p.w.etcd.find(step.MemberID)
	w.counts.GaveWay++
	if m == nil || m.learner {
		if w.now()-w.etcd.changed > p.stale() {
			p.breach("P2", by.host, "the leadership is handed over to what is no voter")
		}
		return
	}
	op, own := p.currentOp(), by.host.config.Host.ID
	switch d := m.host.disk; {
	case m.downAt != 0 && w.now()-m.downAt > p.stale():
		p.breach("P2", by.host, fmt.Sprintf("the leadership is handed over to %s, which has been down for %s",
			m.host.name, (w.now()-m.downAt).Round(time.Second)))
	case d.slow() && w.now()-d.since > slowForSure && p.tells(m.host, health.Slow):
		p.breach("P6", by.host, fmt.Sprintf("the leadership is handed over to %s, whose disk has been slow for %s",
			m.host.name, (w.now()-d.since).Round(time.Second)))
	case op != nil && w.now()-p.opSince > p.stale() && !p.justIntruded() &&
		(op.Host == own || op.Host == m.host.config.Host.ID || uint64(op.MemberID) == m.id):
		p.breach("P1", by.host, fmt.Sprintf("the leadership is handed over from %s to %s in the operation of %s",
			by.host.name, m.host.name, op.HostName))
	}
}

// tells reports whether a host's record says that it is so. One that is frozen may put an old one there when it thaws.
func (p *promises) tells(h *host, state health.State) bool {
	kv := p.w.etcd.store.Get(p.w.keys.Host(h.config.Host.ID))
	if kv == nil {
		return false
	}
	told, err := record.Decode[record.Host](kv.Value)
	return err == nil && told.Health == state.String()
}

// speechless is an etcd of which no member says anything for itself.
type speechless struct{ agent.Etcd }

func (s *speechless) Answers(context.Context, []cluster.Member) map[uint64]cluster.Status { return nil }

// praising shows every other host as one that is well.
type praising struct {
	agent.Etcd
	own string
}

func (r *praising) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
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
