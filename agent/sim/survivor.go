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

// copied is a copy of a host's data that a plan has requested. It is on disk, either complete or useless.
type copied struct {
	work  recovery.Work
	whole bool
	index uint64 // the last entry that it holds
}

// survivorData is the data directory as seen by one agent process during a recovery.
type survivorData struct {
	p     *process
	state recovery.Copy
	which int // counts copies begun or cancelled
}

// Read returns what the log contains.
func (s *survivorData) Read(ctx context.Context) (recovery.Log, error) {
	s.p.pass(laneOperator, "read log", true)
	h := s.p.host
	if err := (agentData{s.p, h.data}).hang(ctx, laneOperator); err != nil {
		return recovery.Log{}, err
	}
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	m := h.unit.member()
	switch {
	case h.data.remains:
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
			ID: record.MemberID(o.id), Name: o.name, PeerURL: o.host.peerURL(), Learner: o.learner,
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
		s.which++
		s.state.Running, s.state.Error = false, "it was called off"
	}
}

// Copy begins a copy, which ends with the process.
func (s *survivorData) Copy(work recovery.Work) {
	h := s.p.host
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.state.Running {
		return
	}
	s.which++
	which := s.which
	s.state = recovery.Copy{Plan: work.Plan, Running: true}
	w.promises.beforeCopy(s.p)
	if h.unit.process {
		s.state = recovery.Copy{Plan: work.Plan, Error: "a running etcd uses it; stop it first"}
		return
	}
	takes := between(w.draw(90, uint64(h.index)), time.Second, 3*time.Minute)
	if h.copy != nil && h.copy.whole && h.copy.work.Plan == work.Plan {
		takes = time.Second
	}
	w.happen(h, happenedUnit, uint64(takes), "a copy of its data is begun")
	w.after(takes, laneEtcd, func() {
		if s.which == which && !s.p.dead.Load() {
			s.copyEnds(work)
		}
	})
}

func (s *survivorData) copyEnds(work recovery.Work) {
	h := s.p.host
	w := h.world
	s.state.Running = false
	m := h.unit.member()
	again := h.copy != nil && h.copy.whole && h.copy.work.Plan == work.Plan
	own := m != nil && h.data.member == uint64(work.Member) && h.data.cluster == uint64(work.Old)
	switch {
	case chance(w.draw(91, uint64(h.index)), 10):
		s.state.Error = "there is no room"
	case h.unit.process:
		s.state.Error = "a running etcd uses it; stop it first"
	case again && (!own || m.applied == work.Index): // moved aside already, or unchanged
		s.state.Complete = true
	case !own || m.applied != work.Index || m.term != work.Term:
		s.state.Error = fmt.Sprintf("the data are not those of the plan: entry %d, not %d", h.appliedHere(), work.Index)
	default:
		s.state.Complete = true
		h.copy = &copied{work: work, whole: true, index: m.applied}
	}
	w.happen(h, happenedUnit, 91, "the copy ends: %q", s.state.Error)
}

func (h *host) appliedHere() uint64 {
	if m := h.unit.member(); m != nil {
		return m.applied
	}
	return 0
}

// Swap moves the old data aside and puts the copy in their place. It may be interrupted in between.
func (s *survivorData) Swap(ctx context.Context, work recovery.Work) ([]string, error) {
	s.p.pass(laneStep, "swap", true)
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
	case h.copy == nil || !h.copy.whole || h.copy.work.Plan != work.Plan:
		return nil, errors.New("the copy is not whole")
	case h.unit.process && h.data.member != 0:
		return nil, errors.New("an etcd has the database open")
	case h.data.member != 0 || h.data.remains:
		h.data.aside++
		moved = append(moved, fmt.Sprintf("/data/member.aside-%d", h.data.aside))
	}
	old := h.data.cluster
	if old != 0 {
		w.replaceCluster(h, work)
	}
	h.data.cluster, h.data.member, h.data.remains = 0, 0, false
	if chance(w.draw(92, uint64(h.index)), 20) {
		return moved, errors.New("it was cut short")
	}
	h.data.become(uint64(work.Cluster), uint64(work.Member))
	w.happen(h, happenedUnit, 92, "the copy is put in place")
	w.settle()
	return moved, nil
}
