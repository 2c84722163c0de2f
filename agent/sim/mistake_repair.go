// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// repairMistakes returns mistakes about the replacement of dead voters and about slow leaders.
func repairMistakes() []Mistake {
	dies := func(n int) func(w *world) {
		return func(w *world) {
			for i := range n { // one after the other
				w.after(time.Duration(i)*20*time.Minute, laneFaults, func() { w.dies(w.aVoter().host) })
			}
		}
	}
	return []Mistake{
		{
			Name: "every host that this host cannot reach counts as reported dead by all", Promise: "P2",
			Says: "that another voter reaches", trouble: cutFromSpares,
			parts: func(p *process, opt *agent.Options) { opt.Etcd = &lonely{Etcd: opt.Etcd, p: p} },
		},
		{
			Name: "the grace time of a dead voter is 60 s", Promise: "P2", Says: "which has been dead for",
			trouble: dies(1), config: func(c *config.Config) { c.Repair.Dead = config.Grace(time.Minute) },
		},
		{
			Name: "replaced voters are not counted", Promise: "P7", Says: "voters have been replaced",
			trouble: dies(2), config: func(c *config.Config) { c.Repair.PerDay = 100 },
		},
		{
			Name: "another unhealthy voter is ignored", Promise: "P7", Says: "is not well either",
			parts: func(p *process, opt *agent.Options) {
				opt.Etcd = &praising{opt.Etcd, "/" + p.host.config.Host.ID}
			},
			trouble: func(w *world) {
				w.dies(w.aVoter().host)
				w.aVoter().host.disk.become(diskSlow)
			},
		},
		{
			Name: "a dead voter is never replaced", Promise: "liveness", Says: "is down",
			trouble: dies(1), config: func(c *config.Config) { c.Repair.Dead = 0 },
		},
		{
			Name: "a slow leader waits an hour before its leadership transfer", Promise: "P2", Says: "leads on",
			trouble: func(w *world) { w.etcd.leader.host.disk.become(diskSlow) },
			config:  func(c *config.Config) { c.Timing.TransferInterval = time.Hour },
		},
		{
			Name: "a leader transfers leadership only while a quorum responds in time", Promise: "P2", Says: "leads on",
			parts:   func(_ *process, opt *agent.Options) { opt.Etcd = &speechless{opt.Etcd} },
			trouble: func(w *world) { w.etcd.leader.host.disk.become(diskCrawls) },
		},
	}
}

// unhealthyMistakes returns mistakes about the replacement of unhealthy voters.
func unhealthyMistakes() []Mistake {
	return []Mistake{
		{
			Name: "the grace time of an unhealthy voter is 30 s", Promise: "P2", Says: "which has been unhealthy for",
			unhealthy: 20 * time.Minute, trouble: func(w *world) { w.slowForGood(w.aVoter().host) },
			config: func(c *config.Config) { c.Repair.Unhealthy = config.Grace(30 * time.Second) },
		},
		{
			Name: "the probe's measurement counts as etcd's own metrics", Promise: "P2",
			Says: "only its own health state reports it as unhealthy", unhealthy: 5 * time.Minute,
			trouble: func(w *world) { w.aVoter().host.disk.become(probeSlow) },
			parts: func(_ *process, opt *agent.Options) {
				told := opt.MemberMetrics
				opt.MemberMetrics = func(ctx context.Context, url string) health.EtcdReading {
					r := told(ctx, url)
					if r.WALFsync.Known {
						r.WALFsync.Counts = []uint64{0, 0, r.WALFsync.Count(), 0}
					}
					return r
				}
			},
		},
		{
			Name: "an unhealthy voter is never replaced", Promise: "liveness", Says: "is slow for good",
			unhealthy: 5 * time.Minute, trouble: func(w *world) { w.slowForGood(w.aVoter().host) },
			config: func(c *config.Config) { c.Repair.Unhealthy = 0 },
		},
	}
}

// aVoter returns a voter that does not lead and is not dead for good.
func (w *world) aVoter() *member {
	voters := w.etcd.voters()
	return voters[slices.IndexFunc(voters, func(m *member) bool { return m != w.etcd.leader && !m.host.gone })]
}

// cutFromSpares cuts all spares off from a voter that all others reach.
func cutFromSpares(w *world) {
	to := w.aVoter().host
	for _, h := range w.hosts {
		if w.etcd.on(h) == nil {
			w.cut(h, to, 1)
			w.cut(to, h, 1)
		}
	}
	w.noticed()
}

// lonely shows every member that does not answer this host as lost by all others, and its agent as gone.
type lonely struct {
	cluster.Etcd
	p    *process
	dead map[uint64]string // their peer URLs
}

func (l *lonely) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := l.Etcd.Statuses(ctx, members)
	l.dead = map[uint64]string{}
	for _, m := range members {
		if s := out[m.ID]; !m.Learner && s.Err != nil && len(m.PeerURLs) > 0 {
			l.dead[m.ID] = m.PeerURLs[0]
		}
	}
	return out
}

func (l *lonely) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	out, err := l.Etcd.Read(ctx, spans...)
	prefix := l.p.host.world.keys.Hosts()
	out.Pairs = slices.DeleteFunc(out.Pairs, func(pair cluster.Pair) bool {
		for _, url := range l.dead {
			if strings.HasPrefix(pair.Key, prefix) && bytes.Contains(pair.Value, []byte(url)) {
				return true
			}
		}
		return false
	})
	for i, pair := range out.Pairs {
		if h, err := record.Decode[record.Host](pair.Value); strings.HasPrefix(pair.Key, prefix) && err == nil {
			h.Sees = slices.DeleteFunc(h.Sees, func(s record.Sight) bool { return l.dead[uint64(s.Member)] != "" })
			for id := range l.dead {
				h.Sees = append(h.Sees, record.Sight{
					Member: record.MemberID(id), Lost: time.Unix(1, 0).UTC(), Link: record.LinkNone,
				})
			}
			if value, err := record.Encode(h); err == nil {
				out.Pairs[i].Value = value
				out.Pairs[i].ModRevision += int64(len(l.dead)) << 40 // it counts as a newer revision of the record
			}
		}
	}
	return out, err
}
