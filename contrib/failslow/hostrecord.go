// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// hostRecord is what a host publishes about its disk. Package diskrecord decides which measurements it contains. The
// host writes it to etcd whenever it differs from the previous one.
type hostRecord struct {
	state     health.State
	code      health.Code
	ungated   health.Gate
	qualified bool
	recovers  bool
	heals     time.Duration
	defective bool
	p99       float64
	writeMean float64
	writesAt  time.Time
	// asks requests that the other voters publish the figures below.
	asks     bool
	p50, p90 float64
	tails    int
	tookAt   time.Time
}

// recordOf returns the record of a host at the given time. compares means that the leader is comparing write times;
// asked means that another voter asks this host for its figures.
func recordOf(p *diskrecord.Publisher, now time.Duration, wall time.Time, a health.Assessment,
	compares, asked bool,
) hostRecord {
	var h record.Host
	p.Set(&h, now, wall, a, diskrecord.Asked{Mean: compares, Figures: asked})
	r := hostRecord{
		state: a.State, qualified: a.Qualified, recovers: a.Recovers, asks: a.AsksPeers, heals: a.HealsAfter,
		defective: a.Defective, p99: h.FsyncP99, writeMean: h.WriteMean, writesAt: h.WritesAt,
		p50: h.WriteP50, p90: h.WriteP90, tails: h.WriteTails, tookAt: h.FiguresAt,
	}
	if a.State != health.OK && a.State != health.Qualifying {
		r.code, r.ungated = a.Code, health.Everything.Without(a.Gates)
	}
	return r
}

// changed returns which parts differ from an older record.
func (r hostRecord) changed(old hostRecord) []string {
	var all []string
	for _, part := range []struct {
		name    string
		differs bool
	}{
		{"health", r.state != old.state || r.code != old.code || r.ungated != old.ungated ||
			r.qualified != old.qualified},
		{"spell", r.recovers != old.recovers || r.heals != old.heals || r.defective != old.defective},
		{"p99", r.p99 != old.p99},
		{"mean", r.writeMean != old.writeMean || r.writesAt != old.writesAt},
		{"asks", r.asks != old.asks},
		{"figures", r.p50 != old.p50 || r.p90 != old.p90 || r.tails != old.tails || r.tookAt != old.tookAt},
	} {
		if part.differs {
			all = append(all, part.name)
		}
	}
	return all
}

// policyHost returns the host as another host's agent observes it.
func (s *seen) policyHost(name string, now time.Duration) policy.Host {
	r := s.record
	h := policy.Host{
		ID: name, Name: name, PeerURL: peerURL(name), Role: policy.RoleVoter, Health: r.state, Ungated: r.ungated,
		Qualified: r.qualified, Manage: true, Recovers: r.recovers, P99: seconds(r.p99),
		AsksWrites: r.asks, HealsAfter: r.heals, Defective: r.defective,
		Strained: s.strained > 0 && now-s.strained <= policy.CommonSpan,
	}
	if r.writeMean > 0 {
		h.Writes.Mean, h.Writes.Age = seconds(r.writeMean), now-s.writesAt
	}
	if r.p50 > 0 {
		h.Writes.WriteFigures = policy.WriteFigures{P50: seconds(r.p50), P90: seconds(r.p90), Tails: r.tails}
		h.Writes.FiguresAge = now - s.tookAt
	}
	if s.unhealthy > 0 {
		h.UnhealthySince.For = max(1, now-s.unhealthy)
	}
	if s.hangs > 0 {
		h.UnhealthySince.HangsFor = max(1, now-s.hangs)
	}
	return h
}

// peerWrites returns the host's write times as another host's judge reads them.
func (s *seen) peerWrites(name string, now time.Duration) health.PeerWrites {
	r := s.record
	p := health.PeerWrites{Host: name, P50: seconds(r.p50), P90: seconds(r.p90), Tails: r.tails}
	if !r.tookAt.IsZero() {
		p.Age = now - s.tookAt
	}
	return p
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func peerURL(name string) string { return "https://" + name + ":2380" }

// seen is a host's record as the other hosts read it, and what they derive from its changes: unhealthy is the time
// since which the host has been unhealthy and not recovering (0: it is not), hangs is the time since which it has been
// STALLED or FAILED (0: it is not), and strained is when strains was last true.
type seen struct {
	record    hostRecord
	queue     []written     // records that are written but not committed yet
	writesAt  time.Duration // when the write mean was first read
	tookAt    time.Duration // when p50, p90 and tails were first read
	unhealthy time.Duration
	hangs     time.Duration
	strains   bool // the host is WARM or worse for a cause that several hosts may share
	strained  time.Duration
}

// written is a record that becomes visible when the leader has committed it.
type written struct {
	record  hostRecord
	visible time.Duration
}

// write publishes a record that becomes visible at the given time.
func (s *seen) write(r hostRecord, visible time.Duration) {
	if n := len(s.queue); n > 0 { // a host's records become visible in the order in which it wrote them
		visible = max(visible, s.queue[n-1].visible)
	}
	s.queue = append(s.queue, written{r, visible})
}

// newest returns the record that was written last.
func (s *seen) newest() hostRecord {
	if n := len(s.queue); n > 0 {
		return s.queue[n-1].record
	}
	return s.record
}

// read applies the records that have become visible by now.
func (s *seen) read(now time.Duration) {
	for len(s.queue) > 0 && s.queue[0].visible <= now {
		next := s.queue[0]
		s.queue = s.queue[1:]
		if next.record.writesAt != s.record.writesAt {
			s.writesAt = next.visible
		}
		if next.record.tookAt != s.record.tookAt {
			s.tookAt = next.visible
		}
		s.record = next.record
		s.strains = (s.record.state == health.Warm || policy.Unhealthy(s.record.state)) && s.record.code.Shared()
		since(&s.unhealthy, policy.Unhealthy(s.record.state) && !s.record.recovers, next.visible)
		since(&s.hangs, s.record.state == health.Stalled || s.record.state == health.Failed, next.visible)
	}
	if s.strains {
		s.strained = now
	}
}

// since sets *at to now when a condition begins to hold, and to 0 while it does not hold.
func since(at *time.Duration, holds bool, now time.Duration) {
	switch {
	case !holds:
		*at = 0
	case *at == 0:
		*at = now
	}
}
