// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// hostRecord is what a host publishes about its disk, as agent/publish writes it: the health state, and rounded
// measurements that change rarely. Its fields are comparable, so a difference is a write to etcd.
type hostRecord struct {
	state     health.State
	code      health.Code
	ungated   health.Gate
	qualified bool
	recovers  bool
	heals     time.Duration
	p99       float64
	writeMean float64
	writesAt  time.Duration
	// asks reports that the host wants the other voters to publish the figures below.
	asks     bool
	p50, p90 float64
	tails    int
	tookAt   time.Duration
}

// publisher decides when a host's record changes.
type publisher struct {
	p99   float64
	p99At time.Duration
	p99Of health.State

	mean         float64
	meanAt       time.Duration
	meanRefilled time.Duration
	meanSpent    int

	p50, p90 float64
	tails    int
	tookAt   time.Duration // 0 if they are not published
	refilled time.Duration
	spent    int
}

// The times of agent/publish.
const (
	p99Every      = 10 * time.Minute
	writesEvery   = 10 * time.Minute
	writesSoonest = 10 * time.Second
	writesBudget  = 10
	writesRefill  = 5 * time.Minute

	figuresEvery   = 30 * time.Minute
	figuresSoonest = 10 * time.Second
	figuresChange  = 1.6
	p90Change      = 2.1
	figuresBudget  = 6
	figuresRefill  = 20 * time.Minute
)

// record returns the record of a host at that time. compares reports that the leader is unhealthy and compares writes,
// and asked that another voter asks for its figures.
func (p *publisher) record(now time.Duration, a health.Assessment, compares, asked bool) hostRecord {
	r := hostRecord{
		state: a.State, qualified: a.Qualified, recovers: a.Recovers, asks: a.AsksPeers, heals: a.HealsAfter,
	}
	if a.State != health.OK && a.State != health.Qualifying {
		r.code, r.ungated = a.Code, health.Everything.Without(a.Gates)
	}
	r.p99 = p.steadyP99(now, a.Figures.WAL.P99, a.State)
	r.writeMean, r.writesAt = p.writes(now, a.Writes, compares)
	p.took(now, a.Writes, asked)
	r.p50, r.p90, r.tails, r.tookAt = p.p50, p.p90, p.tails, p.tookAt
	return r
}

// steadyP99 returns the published p99, in octaves.
func (p *publisher) steadyP99(now, p99 time.Duration, state health.State) float64 {
	level := octave(p99)
	near := p.p99 != 0 && level <= 2*p.p99 && level >= p.p99/2
	soon := p.p99 != 0 && state == p.p99Of && now-p.p99At < p99Every
	if level == 0 || near || soon {
		return p.p99
	}
	p.p99, p.p99At, p.p99Of = level, now, state
	return level
}

// writes returns the published mean of the writes, in half octaves, and when it was measured.
func (p *publisher) writes(now time.Duration, w health.Writes, asked bool) (mean float64, at time.Duration) {
	if !asked || !w.Known() {
		p.mean, p.meanAt = 0, 0
		return 0, 0
	}
	if back := int((now - p.meanRefilled) / writesRefill); back > 0 {
		p.meanSpent, p.meanRefilled = max(p.meanSpent-back, 0), now
	}
	age, level := now-p.meanAt, halfOctave(w.Most)
	changed := level > p.mean || level < 0.6*p.mean
	due := p.meanAt == 0 || age >= writesEvery || changed && age >= writesSoonest
	if due && p.meanSpent < writesBudget {
		p.mean, p.meanAt, p.meanSpent = level, now, p.meanSpent+1
	}
	return p.mean, p.meanAt
}

// took updates the published median, 90th percentile and number of slow episodes.
func (p *publisher) took(now time.Duration, w health.Writes, asked bool) {
	if !asked || w.P50 == 0 {
		p.p50, p.p90, p.tails, p.tookAt = 0, 0, 0, 0
		return
	}
	if back := int((now - p.refilled) / figuresRefill); back > 0 {
		p.spent, p.refilled = max(p.spent-back, 0), now
	}
	age := now - p.tookAt
	due := p.tookAt == 0 || age >= figuresEvery || p.differ(w) && age >= figuresSoonest
	if due && p.spent < figuresBudget {
		p.p50, p.p90, p.tails = quarterOctave(w.P50), quarterOctave(w.P90), w.Tails
		p.tookAt, p.spent = now, p.spent+1
	}
}

// differ reports whether the figures have changed by more than chance explains.
func (p *publisher) differ(w health.Writes) bool {
	far := func(now time.Duration, was, factor float64) bool {
		ratio := now.Seconds() / was
		return ratio > factor || ratio < 1/factor
	}
	return far(w.P50, p.p50, figuresChange) || far(w.P90, p.p90, p90Change) ||
		w.Tails >= 2*p.tails+4 || 2*w.Tails+4 <= p.tails
}

// quarterOctave rounds to the nearest microsecond times a power of the fourth root of two, in seconds.
func quarterOctave(d time.Duration) float64 {
	steps := math.Round(4 * math.Log2(float64(d)/float64(time.Microsecond)))
	return math.Exp2(max(steps, 0)/4) / 1e6
}

// octave rounds up to 0.125 ms times a power of two, in seconds.
func octave(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	step := 125 * time.Microsecond
	for step < d {
		step *= 2
	}
	return step.Seconds()
}

// halfOctave rounds up to a microsecond times a power of √2, in seconds.
func halfOctave(d time.Duration) float64 {
	steps := math.Ceil(2*math.Log2(float64(d)/float64(time.Microsecond)) - 1e-9)
	return math.Exp2(max(steps, 0)/2) / 1e6
}

// policyHost returns how another host's agent sees the record.
func (s *seen) policyHost(name string, now time.Duration) policy.Host {
	r := s.record
	h := policy.Host{
		ID: name, Name: name, PeerURL: peerURL(name), Role: policy.RoleVoter, Health: r.state, Ungated: r.ungated,
		Qualified: r.qualified, Manage: true, Recovers: r.recovers, P99: seconds(r.p99),
		AsksWrites: r.asks, HealsAfter: r.heals, Strained: s.strained > 0 && now-s.strained <= policy.CommonSpan,
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

// peerWrites returns the host's writes as another host's judge reads them.
func (s *seen) peerWrites(name string, now time.Duration) health.PeerWrites {
	r := s.record
	p := health.PeerWrites{Host: name, P50: seconds(r.p50), P90: seconds(r.p90), Tails: r.tails}
	if r.tookAt > 0 {
		p.Age = now - s.tookAt
	}
	return p
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func peerURL(name string) string { return "https://" + name + ":2380" }

// seen is a host's record as the other hosts read it, and what they derive from its changes. A moment is 0 if its
// condition does not hold.
type seen struct {
	record    hostRecord
	queue     []written     // not visible yet
	writesAt  time.Duration // when the write mean was first read
	tookAt    time.Duration // when the other figures were first read
	unhealthy time.Duration
	hangs     time.Duration
	strains   bool // it is WARM or worse from a cause that several hosts may share
	strained  time.Duration
}

// written is a record on its way: the leader commits it first.
type written struct {
	record  hostRecord
	visible time.Duration
}

// write publishes a record that becomes visible at that time.
func (s *seen) write(r hostRecord, visible time.Duration) {
	if n := len(s.queue); n > 0 { // writes of one host keep their order
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

// read makes what is visible by now current.
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

// since keeps when something began to hold.
func since(at *time.Duration, holds bool, now time.Duration) {
	switch {
	case !holds:
		*at = 0
	case *at == 0:
		*at = now
	}
}
