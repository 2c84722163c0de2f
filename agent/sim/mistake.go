// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	quorumddisk "github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/systemd"
)

// Mistake is a mistake that is put into every agent, or into what an agent observes. A simulation that does not find it
// proves nothing.
type Mistake struct {
	Name    string
	Promise string // that it breaks
	Says    string // a part of the breach's text
	// parts changes an agent's parts, timing its clocks, config its whole configuration.
	parts  func(p *process, opt *agent.Options)
	timing func(t *config.Timing)
	config func(c *config.Config)
	// trouble replaces the random faults. The cluster then has seven hosts for five voters. One voter is replaced when
	// it has been dead for 6 min, or unhealthy for that time.
	trouble   func(w *world)
	unhealthy time.Duration
	// unfenced makes etcd ignore all conditions of transactions.
	unfenced bool
}

// Mistakes returns the seeded mistakes.
func Mistakes() []Mistake {
	asking := func(wrap func(c cluster.Etcd, p *process) cluster.Etcd) func(p *process, opt *agent.Options) {
		return func(p *process, opt *agent.Options) { opt.Etcd = wrap(opt.Etcd, p) }
	}
	return append([]Mistake{
		{
			Name: "the lock counts as held long after its lease has expired", Promise: "P5",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &believing{Etcd: c}
			}),
		},
		{
			Name: "the lock's clock stops while the agent is frozen", Promise: "P5",
			parts: func(p *process, opt *agent.Options) {
				opt.Now = func() time.Duration { return p.now() - time.Duration(p.frozenFor.Load()) }
			},
		},
		{Name: "etcd's conditions are not set", Promise: "P1", unfenced: true},
		{Name: "an operation is adopted at once", Promise: "P1", timing: func(t *config.Timing) {
			t.OrphanGrace = 0
		}},
		{Name: "UNKNOWN counts as OK", Promise: "P6", parts: func(_ *process, opt *agent.Options) {
			opt.Probe = trusting{opt.Probe.(*probe)}
		}},
		{
			Name: "a voter that is down counts as live", Promise: "P2",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &hopeful{Etcd: c}
			}),
		},
		{Name: "a change does not wait for the one before to settle", Promise: "P2", timing: func(t *config.Timing) {
			t.Settle, t.Cooldown = 0, 0
		}},
		{Name: "a learner is promoted at once", Promise: "P2", timing: func(t *config.Timing) {
			t.PromoteStable, t.SteadyLag, t.PromoteLag = 0, 0, 1<<30
		}},
		{
			Name: "every host counts as ready", Promise: "P2",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &welcoming{Etcd: c}
			}),
		},
		{Name: "a member's ID is misread in its data", Promise: "P2", parts: func(_ *process, opt *agent.Options) {
			opt.Data = misread{opt.Data, func() bool { return true }}
		}},
		{Name: "a learner's ID is misread in its data", Promise: "P3", parts: func(p *process, opt *agent.Options) {
			opt.Data = misread{opt.Data, p.host.holdsLearner}
		}},
		{
			Name: "outdated answers of members count as current", Promise: "P2",
			parts: asking(func(c cluster.Etcd, p *process) cluster.Etcd {
				return &remembering{Etcd: c, p: p}
			}),
		},
		{
			Name: "a host forgets its cluster ID", Promise: "P2",
			parts: func(_ *process, opt *agent.Options) {
				opt.Files = forgetful{opt.Files}
			},
		},
		{
			Name: "another host's report of its operation is ignored", Promise: "P1",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &deaf{Etcd: c}
			}),
			trouble: unrecorded,
			// Otherwise the others wait as long as its host counts as present.
			config: func(c *config.Config) { c.Timing.Cooldown = 0 },
		},
		{
			Name: "a running command counts as finished", Promise: "P4",
			parts: func(_ *process, opt *agent.Options) {
				opt.Hooks = hasty{opt.Hooks}
			},
		},
		{
			Name: "a cleanly stopped etcd counts as failed", Promise: "P4",
			parts: func(_ *process, opt *agent.Options) {
				opt.Unit = eager{opt.Unit}
			},
		},
		{
			Name: "every other host counts as healthy", Promise: "P6",
			parts: asking(func(c cluster.Etcd, p *process) cluster.Etcd {
				return &praising{c, "/" + p.host.config.Host.ID}
			}),
		},
	}, slices.Concat(repairMistakes(), unhealthyMistakes(), recoveryMistakes())...)
}

// believing makes every lease look twenty times as long.
type believing struct{ cluster.Etcd }

func (b *believing) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	id, got, err := b.Etcd.Grant(ctx, ttl)
	return id, 20 * got, err
}

func (b *believing) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	ttl, err := b.Etcd.KeepAliveOnce(ctx, id)
	return 20 * ttl, err
}

// trusting shows an unmeasured disk as a fast one.
type trusting struct{ *probe }

func (t trusting) Read() quorumddisk.Reading {
	before := t.read
	r := t.probe.Read()
	if r.Alive {
		return r
	}
	r = quorumddisk.Reading{
		Alive: true, NextDirect: time.Millisecond, NextWAL: time.Millisecond,
		Usage: &quorumddisk.Usage{Total: plenty, Free: plenty},
	}
	for at := before + time.Second; at <= t.read; at += time.Second {
		r.Samples = append(r.Samples, quorumddisk.Sample{
			Lane: quorumddisk.LaneWAL, End: at - t.p.began,
			Latency: time.Millisecond,
		})
	}
	return r
}

// hasty shows every running command as successfully done.
type hasty struct{ hooks.Programs }

func (h hasty) State(ctx context.Context, run hooks.Run) (hooks.Result, error) {
	r, err := h.Programs.State(ctx, run)
	if r.State == hooks.Running {
		r.State = hooks.Done
	}
	return r, err
}

// hopeful shows every voter as live.
type hopeful struct{ cluster.Etcd }

func (h *hopeful) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := h.Etcd.Statuses(ctx, members)
	var good cluster.Status
	for _, s := range out {
		if s.Linearizable && s.Applied >= good.Applied {
			good = s
		}
	}
	for _, m := range members {
		if s := out[m.ID]; s.Err != nil && !m.Learner {
			s = good
			s.MemberID = m.ID
			out[m.ID] = s
		}
	}
	return out
}

// welcoming shows every host as ready, with no reason to wait.
type welcoming struct{ cluster.Etcd }

func (w *welcoming) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := w.Etcd.Read(ctx, spans...)
	waiting := regexp.MustCompile(`"waiting":"[A-Z_]*"`)
	for i, pair := range out.Pairs {
		if bytes.Contains(pair.Value, []byte(`"waiting"`)) {
			out.Pairs[i].Value = waiting.ReplaceAll(pair.Value, []byte(`"waiting":""`))
		}
	}
	return out, err
}

// unrecorded requests maintenance for all voters. Then it repeatedly freezes the agent of the host in maintenance for
// as long as others take that for present, and deletes the operation record and the lock. Only that host's own record
// then shows whose operation is in flight.
func unrecorded(w *world) {
	first := w.aVoter().host
	w.askMaintenance(first, control.MaintenanceRequest{Work: control.WorkMaintenance, KeepRunning: true})
	w.after(5*time.Minute, laneFaults, func() {
		for _, m := range w.etcd.members {
			if m.host != first {
				w.askMaintenance(m.host, control.MaintenanceRequest{Work: control.WorkRestart})
			}
		}
	})
	for at := 10 * time.Minute; at < time.Hour; at += 5 * time.Minute {
		w.after(at, laneFaults, func() {
			if first.agent != nil {
				w.freeze(first.agent, w.plan.timing().HostRecordTTL, "")
			}
			w.intrude(clientv3.OpDelete(w.keys.Op()), clientv3.OpDelete(w.keys.Lock()))
		})
	}
	w.after(2*time.Hour, laneFaults, func() { w.endMaintenance(first) })
}

// deaf hides the operation and the request in every host record, by which the others know of them.
type deaf struct{ cluster.Etcd }

func (d *deaf) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := d.Etcd.Read(ctx, spans...)
	turn, wants := regexp.MustCompile(`,"turn":"[^"]*"`), regexp.MustCompile(`,"wants":"[^"]*"`)
	for i, pair := range out.Pairs {
		if turn.Match(pair.Value) {
			out.Pairs[i].Value = wants.ReplaceAll(turn.ReplaceAll(pair.Value, nil), nil)
		}
	}
	return out, err
}

// remembering returns old answers, as a resting host would that does not look again before a step.
type remembering struct {
	cluster.Etcd
	p     *process
	last  map[uint64]cluster.Status
	asked time.Duration
}

// remembered is how long an answer is reused.
const remembered = 5 * time.Minute

func (r *remembering) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := r.Etcd.Statuses(ctx, members)
	if now := r.p.now(); r.last == nil || now-r.asked > remembered {
		r.last, r.asked = out, now
	}
	for id, s := range r.last {
		if fresh, ok := out[id]; ok && fresh.Err != nil && s.Err == nil {
			out[id] = s
		}
	}
	return out
}

// forgetful does not record the cluster that has answered.
type forgetful struct{ hoststate.Files }

func (f forgetful) Write(path string, data []byte, durable bool) error {
	if strings.HasSuffix(path, "/seen.json") {
		return errDisk // so that the agent does not count it as written either
	}
	return f.Files.Write(path, data, durable)
}

// misread returns another member's ID.
type misread struct {
	agent.DataDir
	when func() bool
}

func (h *host) holdsLearner() bool {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	m := h.world.etcd.on(h)
	return m != nil && m.learner
}

func (d misread) Inspect(ctx context.Context) (datadir.Contents, error) {
	c, err := d.DataDir.Inspect(ctx)
	if c.MemberID != 0 && d.when() {
		c.MemberID++
	}
	return c, err
}

// eager shows a cleanly stopped etcd as failed.
type eager struct{ systemd.Unit }

func (e eager) Status(ctx context.Context) (systemd.Status, error) {
	s, err := e.Unit.Status(ctx)
	if s.State == systemd.Inactive {
		s.State = systemd.Failed
	}
	return s, err
}
