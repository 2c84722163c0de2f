// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/systemd"
)

// externalStory returns a story in which others run all etcds. Its random numbers are its own.
func externalStory(seed uint64, turns *int) Options {
	return Options{
		Seed: seed, Faulty: 2 * time.Hour,
		plan: func(p *plan) {
			p.Voters = 3 + 2*int(seed%2)
			p.Hosts, p.Standbys, p.Fresh, p.Dead, p.Unhealthy = p.Voters, 0, false, 0, 0
		},
		trouble: func(w *world, length time.Duration) { *turns += runByOthers(w, length) },
	}
}

func TestHostsWithExternalEtcdsTakeTurns(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	switch {
	case many():
		seeds = 100
	case *hoursFlag >= 100:
		seeds = 2
	}
	turns := 0
	for seed := *fromFlag; seed < *fromFlag+seeds; seed++ {
		opt := externalStory(seed, &turns)
		if r := run(t, opt); r.Breach != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, r.Breach, r.Plan, story(t, opt, 200))
		}
	}
	if turns < int(seeds) {
		t.Errorf("others worked on %d etcds in %d stories: this test has shown nothing", turns, seeds)
	}
	t.Logf("others had %d turns in %d stories", turns, seeds)
}

// mistakenForOwn makes an agent believe that it runs an etcd which others run.
type mistakenForOwn struct{ systemd.Unit }

func (d mistakenForOwn) Status(ctx context.Context) (systemd.Status, error) {
	s, err := d.Unit.Status(ctx)
	s.ByPrograms = true
	return s, err
}

func TestMistakesWithAnExternalEtcdAreFound(t *testing.T) {
	t.Parallel()
	for says, m := range map[string]Mistake{
		"an etcd that others run is": {Promise: "P4", parts: func(_ *process, opt *agent.Options) {
			opt.Unit = mistakenForOwn{opt.Unit}
		}},
		"of a voter that is safe to touch while voter": {Promise: "P2", parts: func(_ *process, opt *agent.Options) {
			opt.Etcd = &hopeful{Etcd: opt.Etcd}
		}},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			turns := 0
			for seed := range uint64(seedsForAMistake) {
				opt := externalStory(seed, &turns)
				opt.Mistake = m
				r := run(t, opt)
				if r.Breach != nil && r.Breach.Promise == m.Promise && strings.Contains(r.Breach.Text, says) {
					t.Logf("found with seed %d: %v", seed, r.Breach)
					return
				}
				if r.Breach != nil {
					t.Logf("seed %d finds: %v", seed, r.Breach)
				}
			}
			t.Errorf("not found in %d seeds: a gap in the simulation", seedsForAMistake)
		})
	}
}
