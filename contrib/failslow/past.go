// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorumd/quorumd/health"
)

// learner is a judge that learns how its disk usually behaves. [health.Judge] is one.
type learner interface {
	History() ([]byte, error)
	UseHistory(health.History)
}

// pasts holds what the judges of the hosts learned in the days before a run. Runs with the same storage, spells and
// group share a past. Each past is simulated once, on healthy disks.
type pasts struct {
	by   newJudge
	days int // length of each past
	// groups is how many different pasts are simulated for the same storage and spells. Several seeds share each of
	// them, because simulating a past for every run would take too long.
	groups int
	mu     sync.Mutex
	all    map[string]*past
}

type past struct {
	once      sync.Once
	histories [][]byte // encoded history of each host; empty if the judges do not learn
	err       error
}

func newPasts(by newJudge) *pasts {
	return &pasts{by: by, days: pastDays, groups: 3, all: map[string]*past{}}
}

// of returns what the hosts of a cluster have learned.
func (p *pasts) of(s *scenario, group int) ([][]byte, error) {
	key := fmt.Sprintf("%s, group %d", s.kind(), group)
	p.mu.Lock()
	one := p.all[key]
	if one == nil {
		one = &past{}
		p.all[key] = one
	}
	p.mu.Unlock()
	one.once.Do(func() { one.histories, one.err = live(*s, group, p.days, p.by) })
	return one.histories, one.err
}

// hostDays returns the number of simulated days, summed over all hosts.
func (p *pasts) hostDays() int {
	days := 0
	for _, one := range p.all {
		days += p.days * len(one.histories)
	}
	return days
}

// live simulates a healthy cluster for the given number of days and returns what its hosts have learned.
func live(s scenario, group, days int, by newJudge) ([][]byte, error) {
	const seed = 1 << 20 // no run uses this seed
	s.name = "past of " + s.kind()
	begin := time.Duration(1+pastDays-days) * day
	c, err := s.buildAt(begin, seed+group, group, source(s.name, group, 0), by)
	if err != nil {
		return nil, err
	}
	for _, h := range c.hosts {
		if _, learns := h.judge.(learner); !learns {
			return nil, nil
		}
	}
	c.run((1+pastDays)*day, nil)
	var all [][]byte
	for _, h := range c.hosts {
		data, err := h.judge.(learner).History()
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// remember loads each host's history into its judge.
func (c *cluster) remember(all [][]byte) error {
	for i, data := range all {
		history, err := health.DecodeHistory(data)
		if err != nil {
			return err
		}
		if j, learns := c.hosts[i].judge.(learner); learns {
			j.UseHistory(history)
		}
	}
	return nil
}
