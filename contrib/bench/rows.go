// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"
)

// row is one claim to measure: the same task, done without and with quorumd.
type row struct {
	name    string // "GROUP" or "GROUP/SIZE"
	about   string
	plainly string // what is measured without quorumd
	ours    string // what is measured with quorumd
	figures []figure
	need    uint64        // free space needed below the bench's directory, in bytes
	bound   time.Duration // time limit for both sides together

	plain, quorumd func(s *site) (values, error)
	// both measures both sides in one run. If it is set, plain and quorumd are nil.
	both func(s *site) (plain, quorumd values, err error)
}

// figure is one measured value of a row. Lower is better, unless basis is set: such a value is context for the others.
type figure struct {
	name, unit string
	digits     int // decimals
	basis      bool
	ours       bool // only the side with quorumd has this figure
}

// values are the measurements of one side, by figure name. A figure that a side does not have is missing.
type values map[string]float64

// The names of the figures.
const (
	worstGap     = "worst write gap"
	quietGap     = "worst write gap before the change"
	machineGap   = "bystander etcd, worst gap"
	failedWrites = "failed writes"
	sentTwice    = "writes sent twice"
	allWrites    = "writes"
	taken        = "taken"
	cpu          = "CPU"
	pss          = "memory (PSS)"
	ownMemory    = "peak anonymous memory"
	scrapeSize   = "scrape, size"
	scrapeTime   = "scrape, time"
	fsyncMean    = "fsync mean"
	fsyncTail    = "fsync p99"
	fsyncBucket  = "upper bound of the p99 bucket"
	writeMiddle  = "write p50"
	writeTail    = "write p99"
	tailRatio    = "ratio to the plain p99"
	fsyncs       = "fsyncs"
	pastGrace    = "time to full strength after the grace period"
	pastAllowed  = "time allowed after the grace period, without copying"
	votersLost   = "voters not serving at the end"
	leadFor      = "time a slow leader kept leading"
	tailBefore   = "write p99 before"
	tailLater    = "write p99 after"
	tailGrown    = "ratio to the p99 before"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

func rows() []row {
	all := slices.Concat(joins(), restarts(), changes(), deadRows(), slowLeaders(), probes(), snapshots(), recoveries())
	return append(all, busy(), proxies(), row{
		name: "rest", about: "cost of an idle agent, on one of three voters, scraped every 15 s",
		plainly: "node_exporter with defaults, scraped every 15 s",
		ours:    "the agent of one voter with its probe; its etcd is not counted",
		figures: []figure{
			{name: cpu, unit: "s/min", digits: 2},
			{name: pss, unit: "MiB", digits: 1},
			{name: scrapeSize, unit: "KiB", digits: 1},
			{name: scrapeTime, unit: "ms", digits: 1},
		},
		need: gibibyte, bound: 8 * time.Minute,
		plain: exporterIdle, quorumd: agentIdle,
	})
}

// joins returns rows for databases of several sizes.
func joins() []row {
	var all []row
	for _, size := range []struct {
		name      string
		valueSize int // bytes of each of the fillWrites writes
		need      uint64
		bound     time.Duration
	}{
		{"empty", 0, gibibyte, 6 * time.Minute},
		{"100MB", 9_100, gibibyte + gibibyte/2, 8 * time.Minute},
		{"1GB", 91_000, 4 * gibibyte, 15 * time.Minute},
	} {
		all = append(all, row{
			name:    "join/" + size.name,
			about:   "a second voter joins a cluster of one with a database of this size, under 100 writes/s",
			plainly: "member add --learner, start etcd, then member promote every second until it is accepted",
			ours:    "the join of a ready host, from the beginning to the end of the operation",
			figures: []figure{
				{name: worstGap, unit: "ms"},
				{name: machineGap, unit: "ms", basis: true},
				{name: failedWrites},
				{name: taken, unit: "s", digits: 1},
			},
			need: size.need, bound: size.bound,
			plain:   func(s *site) (values, error) { return plainJoin(s, size.valueSize) },
			quorumd: func(s *site) (values, error) { return agentJoin(s, size.valueSize) },
		})
	}
	return all
}

// restarts returns rows for clusters of several sizes.
func restarts() []row {
	var all []row
	for _, n := range []int{3, 5} {
		all = append(all, row{
			name: fmt.Sprintf("restart/%d", n),
			about: fmt.Sprintf("every etcd of %d is restarted, one by one, under 50 writes/s, each "+
				"retried for 5 s", n),
			plainly: "SIGTERM, start, the next one as soon as it answers a linearizable read",
			ours:    "quorumctl rollout start restart",
			figures: []figure{
				{name: worstGap, unit: "ms"},
				{name: machineGap, unit: "ms", basis: true},
				{name: failedWrites},
				{name: sentTwice},
				{name: allWrites, basis: true},
				{name: taken, unit: "s", digits: 1},
			},
			need: uint64(n) * gibibyte / 2, bound: time.Duration(6+2*n) * time.Minute,
			plain:   func(s *site) (values, error) { return plainRestart(s, n) },
			quorumd: func(s *site) (values, error) { return agentRestart(s, n) },
		})
	}
	return all
}
