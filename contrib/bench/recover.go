// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// factsBound is how long a request for facts or a request to apply a plan may take. For facts, a child process
	// reads the whole log.
	factsBound   = 2 * time.Minute
	recoverBound = 10 * time.Minute
)

// The figures of a recovery.
const (
	noticed     = "time until NO_QUORUM is reported"
	factsTaken  = "time for collect"
	planMade    = "time for plan"
	servesAlone = "time from apply to serving alone"
	wholeAgain  = "time from serving alone to three voters"
)

// recoveries returns rows for databases of several sizes.
func recoveries() []row {
	var all []row
	for _, size := range []struct {
		name      string
		valueSize int
		need      uint64
	}{{"empty", 0, gibibyte}, {"100MB", 9_100, 2 * gibibyte}, {"1GB", 91_000, 6 * gibibyte}} {
		all = append(all, row{
			name: "recover/" + size.name,
			about: "two of three voters with a database of this size are lost for good; the third survives, and " +
				"two hosts with empty disks join it",
			plainly: "none: etcd has no command for it",
			ours:    "quorumctl recover collect, plan and apply",
			figures: []figure{
				{name: noticed, unit: "s", digits: 1, ours: true},
				{name: factsTaken, unit: "s", digits: 1, ours: true},
				{name: planMade, unit: "ms", digits: 1, ours: true},
				{name: servesAlone, unit: "s", digits: 1, ours: true},
				{name: wholeAgain, unit: "s", digits: 1, ours: true},
			},
			need: size.need, bound: 25 * time.Minute,
			both: func(s *site) (plain, quorumd values, err error) {
				quorumd, err = loseAndRecover(s, size.valueSize)
				return nil, quorumd, err
			},
		})
	}
	return all
}

// loseAndRecover loses two of three hosts and recovers the cluster.
func loseAndRecover(s *site, valueSize int) (values, error) {
	three := map[policy.Role]int{policy.RoleVoter: 3}
	f, err := s.formWith(3, three, !s.quick, func(i int, o *testbed.HostOptions) (err error) {
		if i > 0 {
			o.Disk, err = s.otherDisk(o.Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	client, err := f.etcd(0)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := s.fill(client, valueSize); err != nil {
		return nil, err
	}
	left, lost, v := f.hosts[0], f.hosts[1:], values{}
	if err := s.lose(lost); err != nil {
		return nil, err
	}
	began := time.Now()
	lap := func(figure string) {
		v[figure], began = time.Since(began).Seconds(), time.Now()
	}
	if err := f.explain(s.until("the survivor to report quorum loss", recoverBound, func(ctx context.Context) bool {
		status, err := f.status(ctx, left)
		return err == nil && slices.ContainsFunc(status.Reasons, func(r control.Reason) bool {
			return r.Code == string(policy.NoQuorum)
		})
	})); err != nil {
		return nil, err
	}
	lap(noticed)
	facts, err := s.facts(left)
	if err != nil {
		return nil, err
	}
	lap(factsTaken)
	plan, err := recovery.NewPlan([]recovery.Facts{facts}, recovery.Choice{
		Cluster: clusterName, Gone: []string{"n2", "n3"}, At: time.Now(), ID: "benchbenchbe", New: 0xabcdef0123,
	})
	if err != nil {
		return nil, err
	}
	lap(planMade)
	v[planMade] *= 1000
	if err := s.applyPlan(f, left, plan); err != nil {
		return nil, err
	}
	lap(servesAlone)
	if err := f.start(1, 2); err != nil {
		return nil, err
	}
	err = f.waitIdle(three, recoverBound)
	lap(wholeAgain)
	return v, err
}

// lose kills etcd and the agent on these hosts, and removes their data.
func (s *site) lose(hosts []*testbed.Host) error {
	for _, h := range hosts {
		_, killErr := h.KillEtcd(s.ctx)
		if err := errors.Join(h.KillAgent(s.ctx), killErr); err != nil {
			return err
		}
	}
	for _, h := range hosts {
		err := s.until("etcd of "+h.Options.Name+" to end", endBound, func(ctx context.Context) bool {
			pid, err := h.EtcdPID(ctx)
			return err == nil && pid == 0
		})
		if err := errors.Join(err, os.RemoveAll(h.DataDir())); err != nil {
			return err
		}
	}
	return nil
}

// facts requests a host's facts, as quorumctl recover collect does, until the host reports no quorum.
func (s *site) facts(h *testbed.Host) (facts recovery.Facts, err error) {
	waitErr := s.until("the facts of "+h.Options.Name, recoverBound, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, factsBound)
		defer cancel()
		facts, err = h.Client.RecoveryFacts(ctx)
		if err == nil && facts.Quorum {
			err = errors.New("the host reports a quorum")
		}
		return err == nil
	})
	return facts, errors.Join(waitErr, err)
}

// applyPlan applies a plan on a host and waits until the plan has ended.
func (s *site) applyPlan(f *fleet, h *testbed.Host, plan recovery.Plan) error {
	ctx, cancel := context.WithTimeout(s.ctx, factsBound)
	defer cancel()
	if _, err := h.Client.ApplyRecovery(ctx, plan); err != nil {
		return err
	}
	var code policy.ReasonCode
	err := f.explain(s.until("the plan to end", recoverBound, func(ctx context.Context) bool {
		status, err := f.status(ctx, h)
		if err != nil || status.Recovery != nil || status.LastRecovery == nil {
			return false
		}
		code = status.LastRecovery.Code
		return true
	}))
	if err == nil && code != policy.Recovered {
		err = fmt.Errorf("the plan has ended with %s", code)
	}
	return err
}
