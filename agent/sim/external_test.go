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

// externalEtcds returns the options of a run in which all etcds are external.
func externalEtcds(seed uint64, operations *int) Options {
	return Options{
		Seed: seed, Faulty: 2 * time.Hour,
		plan: func(p *plan) {
			p.Voters = 3 + 2*int(seed%2)
			p.Hosts, p.Standbys, p.Fresh, p.Dead, p.Unhealthy = p.Voters, 0, false, 0, 0
		},
		trouble: func(w *world, length time.Duration) { *operations += runExternalEtcds(w, length) },
	}
}

func TestHostsWithExternalEtcdsGoDownOneAtATime(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	switch {
	case many():
		seeds = 100
	case *hoursFlag >= 100:
		seeds = 2
	}
	operations := 0
	for seed := *fromFlag; seed < *fromFlag+seeds; seed++ {
		opt := externalEtcds(seed, &operations)
		if r := run(t, opt); r.Breach != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, r.Breach, r.Plan, story(t, opt, 200))
		}
	}
	if operations < int(seeds) {
		t.Errorf("work on %d etcds in %d runs: the test proves nothing", operations, seeds)
	}
	t.Logf("work on %d etcds in %d runs", operations, seeds)
}

// externalAsOwn makes an agent treat an external etcd as its own.
type externalAsOwn struct{ systemd.Unit }

func (u externalAsOwn) Status(ctx context.Context) (systemd.Status, error) {
	s, err := u.Unit.Status(ctx)
	s.ByPrograms = true
	return s, err
}

func TestMistakesWithAnExternalEtcdAreFound(t *testing.T) {
	t.Parallel()
	for text, m := range map[string]Mistake{
		"an external etcd is": {Promise: "P4", parts: func(_ *process, opt *agent.Options) {
			opt.Unit = externalAsOwn{opt.Unit}
		}},
		"of a voter reported safe to stop while voter": {Promise: "P2", parts: func(_ *process, opt *agent.Options) {
			opt.Etcd = &downAsLive{Etcd: opt.Etcd}
		}},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			operations := 0
			for seed := range uint64(seedsForAMistake) {
				opt := externalEtcds(seed, &operations)
				opt.Mistake = m
				r := run(t, opt)
				if r.Breach != nil && r.Breach.Promise == m.Promise && strings.Contains(r.Breach.Text, text) {
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
