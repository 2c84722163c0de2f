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
			for i := range n {
				w.after(time.Duration(i)*20*time.Minute, laneFaults, func() { w.killForGood(w.anyFollower().host) })
			}
		}
	}
	return []Mistake{
		{
			Name: "a voter that this host cannot reach counts as reported dead by all hosts", Promise: "P2",
			Text: "although another voter reaches it", trouble: cutFromSpares,
			parts: func(p *process, opt *agent.Options) { opt.Etcd = &unreachableAsDead{Etcd: opt.Etcd, p: p} },
		},
		{
			Name: "the grace period of a dead voter is 60 s", Promise: "P2", Text: "after being dead for only",
			trouble: dies(1), config: func(c *config.Config) { c.Repair.Dead = config.Grace(time.Minute) },
		},
		{
			Name: "replaced voters are not counted", Promise: "P7", Text: "voters have been replaced",
			trouble: dies(2), config: func(c *config.Config) { c.Repair.PerDay = 100 },
		},
		{
			Name: "another unhealthy voter is ignored", Promise: "P7", Text: "is down or unhealthy too",
			parts: func(p *process, opt *agent.Options) {
				opt.Etcd = &othersHealthy{opt.Etcd, "/" + p.host.config.Host.ID}
			},
			trouble: func(w *world) {
				w.killForGood(w.anyFollower().host)
				w.anyFollower().host.disk.setState(diskSlow)
			},
		},
		{
			Name: "a dead voter is never replaced", Promise: "liveness", Text: "is down",
			trouble: dies(1), config: func(c *config.Config) { c.Repair.Dead = 0 },
		},
		{
			Name: "a slow leader waits an hour before its leadership transfer", Promise: "P2", Text: "keeps leading",
			trouble: func(w *world) { w.etcd.leader.host.disk.setState(diskSlow) },
			config:  func(c *config.Config) { c.Timing.TransferInterval = time.Hour },
		},
		{
			Name: "a leader transfers leadership only while a quorum responds in time", Promise: "P2",
			Text:    "keeps leading",
			parts:   func(_ *process, opt *agent.Options) { opt.Etcd = &noAnswers{opt.Etcd} },
			trouble: func(w *world) { w.etcd.leader.host.disk.setState(diskCrawls) },
		},
	}
}

// unhealthyMistakes returns mistakes about the replacement of unhealthy voters.
func unhealthyMistakes() []Mistake {
	return []Mistake{
		{
			Name: "an unhealthy voter's grace period is 30 s", Promise: "P2", Text: "it has been unhealthy for only",
			unhealthy: 20 * time.Minute, trouble: func(w *world) { w.makeSlowForGood(w.anyFollower().host) },
			config: func(c *config.Config) { c.Repair.Unhealthy = config.Grace(30 * time.Second) },
		},
		{
			Name: "the probe's measurement counts as etcd's own metrics", Promise: "P2",
			Text: "only its own health state reports it as unhealthy", unhealthy: 5 * time.Minute,
			trouble: func(w *world) { w.anyFollower().host.disk.setState(probeSlow) },
			parts: func(_ *process, opt *agent.Options) {
				read := opt.MemberMetrics
				opt.MemberMetrics = func(ctx context.Context, url string) health.EtcdReading {
					r := read(ctx, url)
					if r.WALFsync.Known {
						r.WALFsync.Counts = []uint64{0, 0, r.WALFsync.Count(), 0}
					}
					return r
				}
			},
		},
		{
			Name: "hashes that cannot be compared are compared", Promise: "P2",
			Text: "only its own health state reports it as unhealthy", unhealthy: 5 * time.Minute,
			parts: func(p *process, opt *agent.Options) {
				opt.Hashes = differentCompactions{opt.Hashes, p.host.world.hosts[1].config.Etcd.PeerURL}
			},
		},
		{
			Name: "an unhealthy voter is never replaced", Promise: "liveness", Text: "is permanently slow",
			unhealthy: 5 * time.Minute, trouble: func(w *world) { w.makeSlowForGood(w.anyFollower().host) },
			config: func(c *config.Config) { c.Repair.Unhealthy = 0 },
		},
	}
}

// anyFollower returns a voter that does not lead, on a host that is not dead.
func (w *world) anyFollower() *member {
	voters := w.etcd.voters()
	return voters[slices.IndexFunc(voters, func(m *member) bool { return m != w.etcd.leader && !m.host.dead })]
}

// cutFromSpares disconnects all spares from one voter, which the other voters still reach.
func cutFromSpares(w *world) {
	to := w.anyFollower().host
	for _, h := range w.hosts {
		if w.etcd.memberOn(h) == nil {
			w.cut(h, to, 1)
			w.cut(to, h, 1)
		}
	}
	w.networkChanged()
}

// unreachableAsDead changes what this host reads about each voter that does not answer it: every host record reports
// the voter as lost, and the record of the voter's own host is hidden.
type unreachableAsDead struct {
	cluster.Etcd
	p    *process
	dead map[uint64]string // the peer URLs of these voters, by member ID
}

func (l *unreachableAsDead) Statuses(ctx context.Context, members []cluster.Member) map[uint64]cluster.Status {
	out := l.Etcd.Statuses(ctx, members)
	l.dead = map[uint64]string{}
	for _, m := range members {
		if s := out[m.ID]; !m.Learner && s.Err != nil && len(m.PeerURLs) > 0 {
			l.dead[m.ID] = m.PeerURLs[0]
		}
	}
	return out
}

func (l *unreachableAsDead) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
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
			h.Sees = slices.DeleteFunc(h.Sees, func(s record.Reachability) bool {
				return l.dead[uint64(s.MemberID)] != ""
			})
			for id := range l.dead {
				h.Sees = append(h.Sees, record.Reachability{
					MemberID: record.MemberID(id), LostSince: time.Unix(1, 0).UTC(), Link: record.LinkNone,
				})
			}
			if value, err := record.Encode(h); err == nil {
				out.Pairs[i].Value = value
				out.Pairs[i].ModRevision += int64(len(l.dead)) << 40 // the agent caches decoded records by revision
			}
		}
	}
	return out, err
}
