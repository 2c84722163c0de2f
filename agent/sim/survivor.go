// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// dataCopy is a copy of a host's data for a recovery plan. It is on disk, and either complete or unusable.
type dataCopy struct {
	work     recovery.Work
	complete bool
	index    uint64 // the index of its last entry
}

// survivorData is an agent's access to the data directory during a recovery.
type survivorData struct {
	p          *process
	state      recovery.Copy
	generation int // the number of copies begun or cancelled so far
}

// Read returns the position of the log, and its members.
func (s *survivorData) Read(ctx context.Context) (recovery.Log, error) {
	s.p.gateWithTrap(laneOperator, "read log", true)
	h := s.p.host
	if err := (agentData{s.p, h.data}).hang(ctx, laneOperator); err != nil {
		return recovery.Log{}, err
	}
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	m := h.unit.member()
	switch {
	case h.data.leftovers:
		return recovery.Log{}, errors.New("there is no log")
	case h.data.member == 0 || m == nil:
		return recovery.Log{Empty: true}, nil
	}
	m.etcd.advance()
	l := recovery.Log{
		Cluster: record.MemberID(h.data.cluster), Member: record.MemberID(h.data.member), Term: m.term,
		Index: m.applied, Commit: m.applied,
	}
	for _, o := range m.etcd.members {
		l.Members = append(l.Members, recovery.Member{
			ID: record.MemberID(o.id), Name: o.name, PeerURL: o.peerURL, Learner: o.learner,
		})
	}
	return l, nil
}

// State returns the progress of the copy.
func (s *survivorData) State() recovery.Copy {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.state
}

// Abandon cancels a copy in progress.
func (s *survivorData) Abandon() {
	w := s.p.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.state.Running {
		s.generation++
		s.state.Running, s.state.Error = false, "it was cancelled"
	}
}

// Copy begins a copy, which is lost if the agent's process ends.
func (s *survivorData) Copy(work recovery.Work) {
	h := s.p.host
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.state.Running {
		return
	}
	s.generation++
	which := s.generation
	s.state = recovery.Copy{Plan: work.Plan, Running: true}
	w.promises.beforeCopy(s.p)
	if h.unit.running {
		s.state = recovery.Copy{Plan: work.Plan, Error: "a running etcd uses it; stop it first"}
		return
	}
	takes := between(w.draw(90, uint64(h.index)), time.Second, 3*time.Minute)
	if h.dataCopy != nil && h.dataCopy.complete && h.dataCopy.work.Plan == work.Plan {
		takes = time.Second
	}
	w.event(h, eventUnit, uint64(takes), "a copy of its data begins")
	w.after(takes, laneEtcd, func() {
		if s.generation == which && !s.p.dead.Load() {
			s.endCopy(work)
		}
	})
}

// endCopy decides the outcome of a copy.
func (s *survivorData) endCopy(work recovery.Work) {
	h := s.p.host
	w := h.world
	s.state.Running = false
	m := h.unit.member()
	again := h.dataCopy != nil && h.dataCopy.complete && h.dataCopy.work.Plan == work.Plan
	own := m != nil && h.data.member == uint64(work.Member) && h.data.cluster == uint64(work.Old)
	switch {
	case chance(w.draw(91, uint64(h.index)), 10):
		s.state.Error = "no space left"
	case h.unit.running:
		s.state.Error = "a running etcd uses it; stop it first"
	case again && (!own || m.applied == work.Index): // the data was already moved aside, or is unchanged
		s.state.Complete = true
	case !own || m.applied != work.Index || m.term != work.Term:
		s.state.Error = fmt.Sprintf("the data differs from the plan: last entry %d, not %d", h.appliedIndex(),
			work.Index)
	default:
		s.state.Complete = true
		h.dataCopy = &dataCopy{work: work, complete: true, index: m.applied}
	}
	w.event(h, eventUnit, 91, "the copy ends: %q", s.state.Error)
}

func (h *host) appliedIndex() uint64 {
	if m := h.unit.member(); m != nil {
		return m.applied
	}
	return 0
}

// Swap moves the old data aside and puts the copy in its place. It may be interrupted between the two. It returns the
// paths of the data that it moved aside.
func (s *survivorData) Swap(ctx context.Context, work recovery.Work) ([]string, error) {
	s.p.gateWithTrap(laneStep, "swap", true)
	h := s.p.host
	if err := (agentData{s.p, h.data}).hang(ctx, laneStep); err != nil {
		return nil, err
	}
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promises.beforeSwap(s.p, work)
	var moved []string
	switch {
	case h.data.cluster == uint64(work.Cluster):
		return nil, nil
	case h.dataCopy == nil || !h.dataCopy.complete || h.dataCopy.work.Plan != work.Plan:
		return nil, errors.New("the copy is incomplete")
	case h.unit.running && h.data.member != 0:
		return nil, errors.New("an etcd has the database open")
	case h.data.member != 0 || h.data.leftovers:
		h.data.aside++
		moved = append(moved, fmt.Sprintf("/data/member.aside-%d", h.data.aside))
	}
	old := h.data.cluster
	if old != 0 {
		w.replaceCluster(h, work)
	}
	h.data.cluster, h.data.member, h.data.leftovers = 0, 0, false
	if chance(w.draw(92, uint64(h.index)), 20) {
		return moved, errors.New("interrupted")
	}
	h.data.setMember(uint64(work.Cluster), uint64(work.Member))
	w.event(h, eventUnit, 92, "the copy is put in place")
	w.updateEtcds()
	return moved, nil
}
