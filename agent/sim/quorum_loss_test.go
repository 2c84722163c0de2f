// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// withQuorumLoss adds quorum loss to a seed's plan, in which operators do not resize the cluster.
func withQuorumLoss(opt Options) Options {
	opt.plan = func(p *plan) {
		p.LostAt, p.LateVoter = p.Faulty/4+time.Duration(p.Seed%7)*p.Faulty/20, p.Seed%2 == 0
		p.Resizes = false
	}
	return opt
}

func TestAClusterIsRecoveredFromQuorumLossOnlyByAPlan(t *testing.T) {
	t.Parallel()
	seeds := uint64(4)
	switch {
	case many():
		seeds = 400
	case *hoursFlag >= 100:
		seeds = 40
	}
	var lost, recovered int
	for seed := *fromFlag; seed < *fromFlag+seeds; seed++ {
		opt := withQuorumLoss(Options{Seed: seed, Faulty: 3 * time.Hour})
		r := run(t, opt)
		lost, recovered = lost+r.QuorumLosses, recovered+r.Recoveries
		if r.Breach != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, r.Breach, r.Plan, story(t, opt, 400))
		}
	}
	if lost == 0 || recovered == 0 {
		t.Errorf("%d quorum losses, %d clusters recovered: the test proves nothing", lost, recovered)
	}
	t.Logf("%d quorum losses, %d clusters recovered", lost, recovered)
}

func TestARunWithQuorumLossIsReproducible(t *testing.T) {
	t.Parallel()
	opt := withQuorumLoss(Options{Seed: *fromFlag + 2, Faulty: 3 * time.Hour})
	first := run(t, opt)
	opt.Story = func(string) {}
	if again := run(t, opt); again.Trace != first.Trace || again.counts != first.counts || first.QuorumLosses == 0 {
		t.Errorf("%x and %x, %+v and %+v", first.Trace, again.Trace, first.counts, again.counts)
	}
}
