// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// probeFor is how long the probe and etcd measure simultaneously. probeEvery is the probe's interval: shorter than
	// its default of 10 s, because a p99 needs a few hundred writes.
	probeFor   = time.Minute
	probeEvery = 200 * time.Millisecond

	// probeValue makes etcd's write to its log about as large as a write of the probe, which has the size that etcd's
	// documentation uses to test a disk. smallValue is for small writes. Both are sizes of a value, in bytes.
	probeValue = 2 << 10
	smallValue = 64

	// probeSlow, added to each sync, brings a disk close to the limit in etcd's documentation, a p99 of 10 ms.
	probeSlow = 6 * time.Millisecond

	etcdFsync  = "etcd_disk_wal_fsync_duration_seconds"
	probeFsync = "quorumd_disk_fsync_duration_seconds"
)

// probeLoad is the load on etcd (values per second, and bytes per value) and the added time of each sync.
type probeLoad struct {
	name        string
	rate, value int
	longer      time.Duration
}

// probes returns rows for several loads, because the duration of an fsync depends on what else loads the disk and on
// how much was written before it. Most small writes go to an existing block; a large one also makes the file system
// commit its journal, and the disk flush its cache twice. Each call takes about 0.1 ms outside the disk, and more if
// the CPU was idle before. This time matters on a fast disk and not on a slow one, so each load also has a row in which
// each sync takes probeSlow longer.
func probes() []row {
	var all []row
	for _, load := range []probeLoad{
		{"10", 10, probeValue, 0},
		{"50", 50, probeValue, 0},
		{"300", 300, probeValue, 0},
		{"300-small", 300, smallValue, 0},
		{"10-slow", 10, probeValue, probeSlow},
		{"50-slow", 50, probeValue, probeSlow},
		{"300-slow", 300, probeValue, probeSlow},
	} {
		all = append(all, row{
			name:    "probe/" + load.name,
			about:   "the probe's fsync latency compared with etcd's own WAL fsync on the same disk, under load",
			plainly: fmt.Sprintf("%s, under %d writes/s of %d bytes%s", etcdFsync, load.rate, load.value, load.disk()),
			ours:    probeFsync + " with lane=\"wal\", in the same minute, every 200 ms",
			figures: []figure{
				{name: fsyncMean, unit: "ms", digits: 2, basis: true},
				{name: fsyncTail, unit: "ms", digits: 2, basis: true},
				{name: fsyncBucket, unit: "ms", basis: true},
				{name: fsyncs, basis: true},
			},
			need: gibibyte / 2, bound: 5 * time.Minute,
			both: func(s *site) (plain, quorumd values, err error) { return probeWithEtcd(s, load) },
		})
	}
	return all
}

// disk describes the delay that is injected into the disk.
func (l probeLoad) disk() string {
	if l.longer == 0 {
		return ""
	}
	return fmt.Sprintf(", each sync delayed by %v", l.longer)
}

// probeWithEtcd runs etcd and the probe on the same disk in the same minute, and measures both.
func probeWithEtcd(s *site, l probeLoad) (plain, quorumd values, err error) {
	f, err := s.startProbed(l)
	if err != nil {
		return nil, nil, err
	}
	o := f.hosts[0].Options
	load, err := testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{
		Endpoints: []string{o.ClientURL}, Rate: l.rate, ValueSize: l.value,
	})
	if err != nil {
		return nil, nil, err
	}
	s.atEnd(func(context.Context) error { load.Stop(); return nil })
	sources := []struct{ url, name, lane string }{
		{o.ClientURL + "/metrics", etcdFsync, ""}, {"http://" + o.Metrics + "/metrics", probeFsync, "wal"},
	}
	look := func() (all []histogram, err error) {
		for _, source := range sources {
			h, err := scrapeHistogram(s.ctx, source.url, source.name, source.lane)
			if err != nil {
				return nil, err
			}
			all = append(all, h)
		}
		return all, nil
	}
	before, err := look()
	if err != nil {
		return nil, nil, err
	}
	if err := s.sleep(probeFor); err != nil {
		return nil, nil, err
	}
	after, err := look()
	if err != nil {
		return nil, nil, err
	}
	var sides [2]values
	for i := range sides {
		h := after[i].since(before[i])
		shared := h.withBounds(after[0]) // the probe has more buckets than etcd
		if h.count() == 0 {
			return nil, nil, fmt.Errorf("%s counted nothing within %v", sources[i].name, probeFor)
		}
		sides[i] = values{
			fsyncMean: 1000 * h.mean(), fsyncTail: 1000 * h.quantile(0.99), fsyncBucket: 1000 * shared.bucketOf(0.99),
			fsyncs: h.count(),
		}
	}
	return sides[0], sides[1], nil
}

// startProbed returns a cluster of one host, on a disk with the load's delay.
func (s *site) startProbed(l probeLoad) (*fleet, error) {
	var slow *testbed.Mount
	if l.longer > 0 {
		var err error
		if slow, err = s.slowDisk(filepath.Join(s.dir, "slow")); err != nil {
			return nil, err
		}
	}
	f, err := s.formWith(1, map[policy.Role]int{policy.RoleVoter: 1}, true,
		func(_ int, o *testbed.HostOptions) error {
			o.Set["disk.walInterval"] = probeEvery.String()
			if slow != nil {
				o.Disk = filepath.Join(slow.Dir, "disk")
			}
			return nil
		})
	if err != nil || slow == nil {
		return f, err
	}
	return f, slow.Rule("fsync * delay=" + l.longer.String())
}
