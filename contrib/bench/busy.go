// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// busyTurns is how often the agent is frozen and thawed, and busyFor how long each phase lasts. Both sides of a
	// short phase meet the same noise of the machine, and in each some thousand writes give a p99.
	busyTurns = 5
	busyFor   = 12 * time.Second
	// thawed is the beginning of a phase that is not counted: a frozen agent has something to catch up on.
	thawed = 2 * time.Second
	// busyRate is how many writes a second the etcd gets.
	busyRate = 300
)

// busy measures what an agent costs a busy etcd.
func busy() row {
	return row{
		name: "busy", about: "cost of the agent to a busy etcd on the same disk, under 300 writes/s",
		plainly: "the agent and its children frozen (SIGSTOP), in alternation with the other side",
		ours:    "the agent running with its default timings",
		figures: []figure{
			{name: writeTail, unit: "ms", digits: 2},
			{name: writeMiddle, unit: "ms", digits: 2},
			{name: tailRatio, unit: "×", digits: 3},
			{name: allWrites, basis: true},
		},
		need: gibibyte / 2, bound: 6 * time.Minute,
		both: busyInTurns,
	}
}

func busyInTurns(s *site) (plain, quorumd values, err error) {
	f, err := s.form(1, true, nil)
	if err != nil {
		return nil, nil, err
	}
	h := f.hosts[0]
	etcd, err := h.EtcdPID(s.ctx)
	if err != nil {
		return nil, nil, err
	}
	load, err := testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{
		Endpoints: []string{h.Options.ClientURL}, Rate: busyRate,
	})
	if err != nil {
		return nil, nil, err
	}
	s.atEnd(func(context.Context) error { load.Stop(); return nil })
	thaw := func() error { return signalAll(h.AgentPID(), etcd, syscall.SIGCONT) }
	s.atEnd(func(context.Context) error { return thaw() })
	var spans [2][]span // frozen, running
	for range busyTurns {
		for side, do := range []func() error{
			func() error { return signalAll(h.AgentPID(), etcd, syscall.SIGSTOP) }, thaw,
		} {
			if err := do(); err != nil {
				return nil, nil, err
			}
			from := time.Now().Add(thawed)
			if err := s.pass(busyFor); err != nil {
				return nil, nil, err
			}
			spans[side] = append(spans[side], span{from, time.Now()})
		}
	}
	sides, err := sideBySide(load.Stop().Writes, spans)
	if err != nil {
		return nil, nil, err
	}
	return sides[0], sides[1], nil
}

// sideBySide returns how long the writes took on each side, and how much longer on the second one.
func sideBySide(writes []testbed.Write, spans [2][]span) ([2]values, error) {
	var tails [2]float64
	var sides [2]values
	for side := range spans {
		took, failed := answered(writes, spans[side])
		if failed > 0 || len(took) == 0 {
			return sides, errors.New("writes have failed: the machine is too busy for this row")
		}
		tails[side] = milliseconds(took[len(took)*99/100])
		sides[side] = values{
			writeTail: tails[side], writeMiddle: milliseconds(took[len(took)/2]), allWrites: float64(len(took)),
			tailRatio: tails[side] / tails[0],
		}
	}
	return sides, nil
}

// span is some time.
type span struct{ from, to time.Time }

// answered returns how long each write took that was sent within the spans, sorted, and how many of them failed.
func answered(writes []testbed.Write, spans []span) (took []time.Duration, failed int) {
	for _, w := range writes {
		if !slices.ContainsFunc(spans, func(s span) bool { return w.Sent.After(s.from) && w.Sent.Before(s.to) }) {
			continue
		}
		if w.Acked.IsZero() {
			failed++
			continue
		}
		took = append(took, w.Acked.Sub(w.Sent))
	}
	slices.Sort(took)
	return took, failed
}

// signalAll sends a signal to a process and its descendants, except to one and its descendants.
func signalAll(pid, except int, sig syscall.Signal) error {
	all, err := family(pid, except)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := syscall.Kill(p.PID, sig); err != nil && (p.PID == pid || !errors.Is(err, syscall.ESRCH)) {
			return err
		}
	}
	return nil
}
