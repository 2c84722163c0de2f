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
	"github.com/quorumd/quorumd/agent/policy"
	quorumddisk "github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/systemd"
)

// Mistake is a mistake that is built into every agent, the agents' observations, or etcd. The simulation must find it.
type Mistake struct {
	Name    string
	Promise string // the promise that it breaks
	Text    string // text that the breach must contain
	// parts changes an agent's components. timing changes the timing section of its configuration, and config the whole
	// configuration.
	parts  func(p *process, opt *agent.Options)
	timing func(t *config.Timing)
	config func(c *config.Config)
	// trouble replaces the random faults. With trouble, the cluster has seven hosts for five voters. Unless config
	// changes this, agents replace at most one voter a day: one that has been dead for 6 min or, if the field unhealthy
	// is set, unhealthy for the time in that field.
	trouble   func(w *world)
	unhealthy time.Duration
	// ignoresConditions makes etcd ignore all conditions of transactions.
	ignoresConditions bool
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
				return &longLeases{Etcd: c}
			}),
		},
		{
			Name: "the lock's clock stops while the agent is frozen", Promise: "P5",
			parts: func(p *process, opt *agent.Options) {
				opt.Now = func() time.Duration { return p.now() - time.Duration(p.frozenFor.Load()) }
			},
		},
		{Name: "etcd ignores the conditions of transactions", Promise: "P1", ignoresConditions: true},
		{Name: "an operation is adopted at once", Promise: "P1", timing: func(t *config.Timing) {
			t.OrphanGrace = 0
		}},
		{Name: "UNKNOWN counts as OK", Promise: "P6", parts: func(_ *process, opt *agent.Options) {
			opt.Probe = unmeasuredAsFast{opt.Probe.(*probe)}
		}},
		{
			Name: "a voter that is down counts as live", Promise: "P2",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &downAsLive{Etcd: c}
			}),
		},
		{
			Name: "a membership change does not wait for the previous one to settle", Promise: "P2",
			timing: func(t *config.Timing) { t.Settle, t.Cooldown = 0, 0 },
		},
		{Name: "a learner is promoted at once", Promise: "P2", timing: func(t *config.Timing) {
			t.PromoteStable, t.SteadyLag, t.PromoteLag = 0, 0, 1<<30
		}},
		{
			Name: "every host counts as ready", Promise: "P2",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &everyHostReady{Etcd: c}
			}),
		},
		{
			Name: "an agent misreads the member ID in its data", Promise: "P2",
			parts: func(_ *process, opt *agent.Options) {
				opt.Data = wrongMemberID{opt.Data, func() bool { return true }}
			},
		},
		{
			Name: "an agent misreads the member ID in its learner's data", Promise: "P3",
			parts: func(p *process, opt *agent.Options) {
				opt.Data = wrongMemberID{opt.Data, p.host.holdsLearner}
			},
		},
		{
			Name: "outdated answers of members count as current", Promise: "P2",
			parts: asking(func(c cluster.Etcd, p *process) cluster.Etcd {
				return &staleStatuses{Etcd: c, p: p}
			}),
		},
		{
			Name: "a host does not record its cluster ID", Promise: "P2",
			parts: func(_ *process, opt *agent.Options) {
				opt.Files = clusterIDNotRecorded{opt.Files}
			},
		},
		{
			Name: "another host's report of its operation is ignored", Promise: "P1",
			parts: asking(func(c cluster.Etcd, _ *process) cluster.Etcd {
				return &withoutOperations{Etcd: c}
			}),
			trouble: deleteOpRecords,
			// with a cooldown, the other hosts would wait until the frozen host's record has expired
			config: func(c *config.Config) { c.Timing.Cooldown = 0 },
		},
		{
			Name: "a running command counts as finished", Promise: "P4",
			parts: func(_ *process, opt *agent.Options) {
				opt.Hooks = runningAsDone{opt.Hooks}
			},
		},
		{
			Name: "a cleanly stopped etcd counts as failed", Promise: "P4",
			parts: func(_ *process, opt *agent.Options) {
				opt.Unit = stoppedAsFailed{opt.Unit}
			},
		},
		{
			Name: "every other host counts as healthy", Promise: "P6",
			parts: asking(func(c cluster.Etcd, p *process) cluster.Etcd {
				return &othersHealthy{c, "/" + p.host.config.Host.ID}
			}),
		},
	}, slices.Concat(repairMistakes(), unhealthyMistakes(), recoveryMistakes(), resizeMistakes(), recallMistakes(),
		readdressMistakes())...)
}

// longLeases makes every lease look twenty times as long as it is.
type longLeases struct{ cluster.Etcd }

func (b *longLeases) Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error) {
	id, got, err := b.Etcd.Grant(ctx, ttl)
	return id, 20 * got, err
}

func (b *longLeases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	ttl, err := b.Etcd.KeepAliveOnce(ctx, id)
	return 20 * ttl, err
}

// unmeasuredAsFast shows an unmeasured disk as a fast one.
type unmeasuredAsFast struct{ *probe }

func (t unmeasuredAsFast) Read() quorumddisk.Reading {
	before := t.read
	r := t.probe.Read()
	if r.Alive {
		return r
	}
	r = quorumddisk.Reading{
		Alive: true, NextDirect: time.Millisecond, NextWAL: time.Millisecond,
		Usage: &quorumddisk.Usage{Total: plentyOfSpace, Free: plentyOfSpace},
	}
	for at := before + time.Second; at <= t.read; at += time.Second {
		r.Samples = append(r.Samples, quorumddisk.Sample{
			Lane: quorumddisk.LaneWAL, End: at - t.p.began,
			Latency: time.Millisecond,
		})
	}
	return r
}

// runningAsDone shows every running command as succeeded.
type runningAsDone struct{ hooks.Programs }

func (h runningAsDone) State(ctx context.Context, run hooks.Run) (hooks.Result, error) {
	r, err := h.Programs.State(ctx, run)
	if r.State == hooks.Running {
		r.State = hooks.Done
	}
	return r, err
}

// downAsLive shows every voter that is down as live.
type downAsLive struct{ cluster.Etcd }

func (h *downAsLive) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
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

// everyHostReady shows every host as ready to join.
type everyHostReady struct{ cluster.Etcd }

func (w *everyHostReady) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := w.Etcd.Read(ctx, spans...)
	waiting := regexp.MustCompile(`"waiting":"[A-Z_]*"`)
	for i, pair := range out.Pairs {
		if bytes.Contains(pair.Value, []byte(`"waiting"`)) {
			out.Pairs[i].Value = waiting.ReplaceAll(pair.Value, []byte(`"waiting":""`))
		}
	}
	return out, err
}

// deleteOpRecords requests maintenance for one voter and, 5 min later, a restart for every other member. Then it
// repeatedly freezes the agent of that voter for the lifetime of its host record, and deletes the operation record and
// the lock. Only the host record then shows that an operation is in flight.
func deleteOpRecords(w *world) {
	first := w.anyFollower().host
	w.requestMaintenance(first, control.MaintenanceRequest{Work: policy.WorkMaintenance, KeepRunning: true})
	w.after(5*time.Minute, laneFaults, func() {
		for _, m := range w.etcd.members {
			if m.host != first {
				w.requestMaintenance(m.host, control.MaintenanceRequest{Work: policy.WorkRestart})
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

// withoutOperations removes the operation, and the request with it, from every host record.
type withoutOperations struct{ cluster.Etcd }

func (d *withoutOperations) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := d.Etcd.Read(ctx, spans...)
	turn, wants := regexp.MustCompile(`,"turn":"[^"]*"`), regexp.MustCompile(`,"wants":"[^"]*"`)
	for i, pair := range out.Pairs {
		if turn.Match(pair.Value) {
			out.Pairs[i].Value = wants.ReplaceAll(turn.ReplaceAll(pair.Value, nil), nil)
		}
	}
	return out, err
}

// staleStatuses replaces a member's error with its previous answer, like a host that polls rarely and does not poll
// again before a step.
type staleStatuses struct {
	cluster.Etcd
	p     *process
	last  map[uint64]cluster.Status
	asked time.Duration
}

// staleFor is how long answers are reused.
const staleFor = 5 * time.Minute

func (r *staleStatuses) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := r.Etcd.Statuses(ctx, members)
	if now := r.p.now(); r.last == nil || now-r.asked > staleFor {
		r.last, r.asked = out, now
	}
	for id, s := range r.last {
		if fresh, ok := out[id]; ok && fresh.Err != nil && s.Err == nil {
			out[id] = s
		}
	}
	return out
}

// clusterIDNotRecorded does not record the ID of the cluster that has answered.
type clusterIDNotRecorded struct{ hoststate.Files }

func (f clusterIDNotRecorded) Write(path string, data []byte, durable bool) error {
	if strings.HasSuffix(path, "/seen.json") {
		return errDisk // the write must fail, or else the agent would assume that the ID is on disk
	}
	return f.Files.Write(path, data, durable)
}

// wrongMemberID misreads the member ID in the data while a condition holds.
type wrongMemberID struct {
	agent.DataDir
	when func() bool
}

// holdsLearner reports whether the host's member is a learner.
func (h *host) holdsLearner() bool {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	m := h.world.etcd.memberOn(h)
	return m != nil && m.learner
}

func (d wrongMemberID) Inspect(ctx context.Context) (datadir.Contents, error) {
	c, err := d.DataDir.Inspect(ctx)
	if c.MemberID != 0 && d.when() {
		c.MemberID++
	}
	return c, err
}

// stoppedAsFailed shows a cleanly stopped etcd as failed.
type stoppedAsFailed struct{ systemd.Unit }

func (e stoppedAsFailed) Status(ctx context.Context) (systemd.Status, error) {
	s, err := e.Unit.Status(ctx)
	if s.State == systemd.Inactive {
		s.State = systemd.Failed
	}
	return s, err
}
