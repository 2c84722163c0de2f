// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// restFor is how long an idle process is watched; scrapeEvery is the scrape interval during that time.
	restFor     = time.Minute
	scrapeEvery = 15 * time.Second
	// beforeRest is how long the process is left alone before the measurement.
	beforeRest = 15 * time.Second
)

// agentIdle measures the agent of one voter.
func agentIdle(s *site) (values, error) {
	f, err := s.form(3, true, nil)
	if err != nil {
		return nil, err
	}
	h := f.hosts[0]
	etcd, err := h.EtcdPID(s.ctx)
	if err != nil {
		return nil, err
	}
	return s.measureIdle(h.AgentPID(), etcd, "http://"+h.Options.Metrics+"/metrics")
}

// exporterIdle measures node_exporter.
func exporterIdle(s *site) (values, error) {
	if _, err := os.Stat(s.exporter); s.exporter == "" || err != nil {
		return nil, &unavailable{"node_exporter not found: make bench builds it if the Go module proxy answers"}
	}
	ports, err := s.ports(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	command := exec.Command(s.exporter, "--web.listen-address="+address, "--log.level=error")
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start node_exporter: %w", err)
	}
	s.atEnd(func(context.Context) error {
		err := command.Process.Kill()
		_ = command.Wait() // Wait returns an error, because the process was killed
		return err
	})
	url := "http://" + address + "/metrics"
	if err := s.until("node_exporter to answer", readyBound, func(ctx context.Context) bool {
		_, err := scrape(ctx, url)
		return err == nil
	}); err != nil {
		return nil, err
	}
	return s.measureIdle(command.Process.Pid, 0, url)
}

// measureIdle measures an idle process and its descendants, without an excluded process and its descendants. The
// process serves its metrics at url.
func (s *site) measureIdle(pid, except int, url string) (values, error) {
	if err := s.sleep(beforeRest); err != nil {
		return nil, err
	}
	began := time.Now()
	before, err := costOf(pid, except)
	if err != nil {
		return nil, err
	}
	var sizes, times []float64
	for range int(restFor / scrapeEvery) {
		if err := s.sleep(scrapeEvery); err != nil {
			return nil, err
		}
		got, err := scrape(s.ctx, url)
		if err != nil {
			return nil, err
		}
		sizes, times = append(sizes, float64(len(got.text))/1024), append(times, milliseconds(got.took))
	}
	after, err := costOf(pid, except)
	if err != nil {
		return nil, err
	}
	return values{
		cpu: (after.cpu - before.cpu) / time.Since(began).Minutes(), pss: float64(after.pss) / mebibyte,
		scrapeSize: median(sizes), scrapeTime: median(times),
	}, nil
}

// cost is the CPU time and memory of a process and its descendants.
type cost struct {
	cpu float64 // CPU time in seconds, since the start of the processes
	pss uint64  // current proportional set size in bytes
	own uint64  // anonymous memory in bytes, which is not backed by a file
}

// costOf adds up the costs of a process and its descendants, except those of an excluded process and its descendants.
func costOf(pid, except int) (cost, error) {
	all, err := processTree(pid, except)
	if err != nil {
		return cost{}, err
	}
	var sum cost
	for _, p := range all {
		stat, statErr := p.Stat()
		memory, memoryErr := p.ProcSMapsRollup()
		if err := errors.Join(statErr, memoryErr); err != nil {
			if p.PID != pid {
				continue // the process has ended, and its parent's CPU time includes its own
			}
			return cost{}, err
		}
		sum.cpu += stat.CPUTime() + float64(stat.CUTime+stat.CSTime)/ticksPerSecond
		sum.pss += memory.Pss
		sum.own += memory.Anonymous
	}
	return sum, nil
}

// ticksPerSecond is the number of ticks in which /proc counts a second of CPU time. It is the same on every Linux on
// which Go runs.
const ticksPerSecond = 100

// processTree returns a process and its descendants, without an excluded process and its descendants.
func processTree(pid, except int) ([]procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	children := map[int][]procfs.Proc{}
	var found []procfs.Proc
	for _, p := range all {
		if stat, err := p.Stat(); err == nil { // the process may have ended meanwhile
			children[stat.PPID] = append(children[stat.PPID], p)
		}
		if p.PID == pid && pid != except {
			found = append(found, p)
		}
	}
	if len(found) == 0 && pid != except {
		return nil, fmt.Errorf("process %d has ended", pid)
	}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i].PID] {
			if child.PID != except {
				found = append(found, child)
			}
		}
	}
	return found, nil
}
