// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// snapshotTurns is how many times the clients are measured, alternately without and with a snapshot.
	snapshotTurns = 3
	// snapshotRate is the number of writes per second to the three voters.
	snapshotRate  = 200
	snapshotBound = 5 * time.Minute
	// aloneFor is the length of a phase without a snapshot.
	aloneFor = 12 * time.Second
)

// snapshots returns rows for databases of several sizes. In half of them the standby has separate hardware, as far as
// one machine can simulate that. In the others all hosts share one disk and all CPUs.
func snapshots() []row {
	var all []row
	for _, where := range []struct {
		group, about string
		apart        bool
	}{
		{"snapshot", "the standby's disk is in memory, and the last CPU is dedicated to it", true},
		{"snapshot-shared", "all share one disk and all CPUs", false},
	} {
		for _, size := range []struct {
			name      string
			valueSize int
			need      uint64
		}{{"100MB", 9_100, 4 * gibibyte}, {"1GB", 91_000, 12 * gibibyte}} {
			all = append(all, row{
				name: where.group + "/" + size.name,
				about: "a database of this size is saved from the standby of three voters, under 200 writes/s: " +
					where.about,
				plainly: "the clients while no snapshot is taken; phases with and without a snapshot alternate",
				ours: "quorumctl snapshot save to a directory; memory of the agent that takes the snapshot and " +
					"of its child; " + where.about,
				figures: []figure{
					{name: writeTail, unit: "ms", digits: 2},
					{name: writeMiddle, unit: "ms", digits: 2},
					{name: tailRatio, unit: "×", digits: 3},
					{name: allWrites, basis: true},
					{name: ownMemory, unit: "MiB", digits: 1},
					{name: taken, unit: "s", digits: 1, ours: true},
				},
				need: size.need, bound: 20 * time.Minute,
				both: func(s *site) (plain, quorumd values, err error) {
					return snapshotsInTurns(s, size.valueSize, where.apart)
				},
			})
		}
	}
	return all
}

// snapshotsInTurns measures the clients of three voters, and the agent of their standby, alternately with and without a
// snapshot in progress.
func snapshotsInTurns(s *site, valueSize int, apart bool) (plain, quorumd values, err error) {
	f, standby, err := s.withStandby(apart)
	if err != nil {
		return nil, nil, err
	}
	client, err := f.etcd(0)
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	if err := s.fill(client, valueSize); err != nil {
		return nil, nil, err
	}
	var voters []string
	for _, h := range f.hosts {
		if h != standby {
			voters = append(voters, h.Options.ClientURL)
		}
	}
	load, err := testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{Endpoints: voters, Rate: snapshotRate})
	if err != nil {
		return nil, nil, err
	}
	s.atEnd(func(context.Context) error { load.Stop(); return nil })
	var spans [2][]span // the phases without a snapshot, and those with one
	var most [2]uint64
	var took []float64
	for range snapshotTurns {
		for side, do := range []func() error{
			func() error { return s.sleep(aloneFor) }, func() error { return s.save(standby) },
		} {
			from := time.Now()
			m, err := s.mostMemory(standby, do)
			if err != nil {
				return nil, nil, err
			}
			spans[side], most[side] = append(spans[side], span{from, time.Now()}), max(most[side], m)
			if side == 1 {
				took = append(took, time.Since(from).Seconds())
			}
		}
	}
	sides, err := sideBySide(load.Stop().Writes, spans)
	if err != nil {
		return nil, nil, err
	}
	for side := range sides {
		sides[side][ownMemory] = float64(most[side]) / mebibyte
	}
	sides[1][taken] = median(took)
	return sides[0], sides[1], nil
}

// withStandby forms three voters, and then adds a fourth host as their standby. If apart is true, the standby has a
// separate disk, which also holds its snapshots, and its own CPU; otherwise all hosts share one directory for
// snapshots.
func (s *site) withStandby(apart bool) (f *fleet, standby *testbed.Host, err error) {
	if apart {
		if err := s.prepareOtherDisk("n4"); err != nil {
			return nil, nil, err
		}
	}
	f, err = s.fleet(4, func(i int, o *testbed.HostOptions) error {
		store := filepath.Join(s.dir, "store")
		if i == 3 && apart {
			store = filepath.Join(o.Dir, "store")
		}
		o.Set["cluster.voters"], o.Set["cluster.standbys"] = "3", "1"
		o.Set["backup.store"] = fmt.Sprintf("{directory: %s}", store)
		o.Set["backup.keep"] = "{count: 1, age: 0s}"
		return os.MkdirAll(store, 0o700)
	})
	if err != nil {
		return nil, nil, err
	}
	roles := map[policy.Role]int{policy.RoleVoter: 3, policy.RoleStandby: 1}
	if err := errors.Join(f.bootstrap(), f.start(1, 2)); err != nil {
		return nil, nil, err
	}
	err = s.until("three voters", formBound, func(ctx context.Context) bool {
		for _, h := range f.hosts[:3] {
			if status, err := f.status(ctx, h); err != nil || status.Role != policy.RoleVoter {
				return false
			}
		}
		return true
	})
	if err := f.explain(err); err != nil {
		return nil, nil, err
	}
	if err := f.start(3); err != nil {
		return nil, nil, err
	}
	if err := f.waitIdle(roles, formBound); err != nil {
		return nil, nil, err
	}
	if !s.quick {
		if err := f.restartWithDefaults(roles); err != nil {
			return nil, nil, err
		}
	}
	standby, err = f.standby()
	if err == nil && apart {
		if standby != f.hosts[3] {
			return nil, nil, errors.New("n4 is not the standby, and only n4 has a separate disk")
		}
		err = s.dedicateCPU(standby)
	}
	return f, standby, err
}

// standby returns the host that holds the learner.
func (f *fleet) standby() (*testbed.Host, error) {
	for _, h := range f.hosts {
		if status, err := f.status(f.s.ctx, h); err == nil && status.Role == policy.RoleStandby {
			return h, nil
		}
	}
	return nil, fmt.Errorf("no host is the standby: %s", f.why())
}

// save takes a snapshot and waits until it is saved.
func (s *site) save(h *testbed.Host) error {
	ctx, cancel := context.WithTimeout(s.ctx, askBound)
	defer cancel()
	if _, err := h.Client.StartSnapshot(ctx, control.SnapshotRequest{Do: control.SnapshotSave}); err != nil {
		return err
	}
	var job control.SnapshotJob
	err := s.until("a snapshot to be saved", snapshotBound, func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, askBound)
		defer cancel()
		var err error
		job, err = h.Client.SnapshotJob(ctx)
		return err == nil && job.Ended != nil
	})
	if err == nil && job.Error != "" {
		err = errors.New(job.Error)
	}
	return err
}

// mostMemory returns the peak memory of an agent and its children during do. It does not count etcd, nor the
// memory-mapped database that is being read, which the kernel may drop at any time.
func (s *site) mostMemory(h *testbed.Host, do func() error) (most uint64, err error) {
	etcd, err := h.EtcdPID(s.ctx)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := costOf(h.AgentPID(), etcd); err == nil { // a child may have just ended
			most = max(most, c.own)
		}
		select {
		case err := <-done:
			return most, err
		case <-tick.C:
		}
	}
}
