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
	// busyTurns is the number of times the agent is frozen and thawed; busyFor is the length of each phase. Short
	// phases expose the frozen and the running agent to the same noise of the machine. Each phase has enough writes (a
	// few thousand) for a p99.
	busyTurns = 5
	busyFor   = 12 * time.Second
	// settleTime is the unmeasured beginning of each phase, in which a thawed agent catches up.
	settleTime = 2 * time.Second
	// busyRate is the number of writes per second to etcd.
	busyRate = 300
)

// busy measures how much an agent slows down a busy etcd.
func busy() row {
	return row{
		name: "busy", about: "cost of the agent to a busy etcd on the same disk, under 300 writes/s",
		plainly: "the agent and its children frozen (SIGSTOP), measured in alternation with the running agent",
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
			from := time.Now().Add(settleTime)
			if err := s.sleep(busyFor); err != nil {
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

// sideBySide returns, for each side, the write latencies and the ratio of their p99 to the p99 of the first side.
func sideBySide(writes []testbed.Write, spans [2][]span) ([2]values, error) {
	var tails [2]float64
	var sides [2]values
	for side := range spans {
		took, failed := latencies(writes, spans[side])
		if failed > 0 || len(took) == 0 {
			return sides, errors.New("writes failed: the machine is too busy for this row")
		}
		tails[side] = milliseconds(took[len(took)*99/100])
		sides[side] = values{
			writeTail: tails[side], writeMiddle: milliseconds(took[len(took)/2]), allWrites: float64(len(took)),
			tailRatio: tails[side] / tails[0],
		}
	}
	return sides, nil
}

type span struct{ from, to time.Time }

// latencies returns the sorted latencies of the writes that were sent within the spans, and how many writes failed.
func latencies(writes []testbed.Write, spans []span) (took []time.Duration, failed int) {
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

// signalAll sends a signal to a process and its descendants, but not to an excluded process and its descendants.
func signalAll(pid, except int, sig syscall.Signal) error {
	all, err := processTree(pid, except)
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
