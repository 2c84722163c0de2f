// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// witness is the spare's evidence about the fsyncs of an unhealthy voter's etcd. It follows the rules of agent/observe:
// a reading every ten seconds, and the p99 of five minutes. Fsyncs stop counting as slow after a minute without a slow
// one.
type witness struct {
	at, slowAt, begun time.Duration
	total             health.Histogram
	recent            health.Recent
	p99               time.Duration
}

const (
	witnessEvery  = 10 * time.Second
	witnessSpan   = 5 * time.Minute
	witnessOldest = 35 * time.Second
	witnessClean  = time.Minute
	// walRate is the number of fsyncs per second, the same on every voter because all voters write the same entries.
	walRate = 10
)

// walBounds returns the bucket bounds of etcd's etcd_disk_wal_fsync_duration_seconds.
func walBounds() []float64 {
	bounds := make([]float64, 14)
	for i := range bounds {
		bounds[i] = 0.001 * float64(uint(1)<<i)
	}
	return bounds
}

// look takes a reading if one is due. Each reading but the first adds the fsyncs of ten seconds, drawn from the disk.
func (w *witness) look(now time.Duration, d *simulatedDisk, rng *rand.Rand, limit time.Duration) {
	if now-w.at < witnessEvery {
		return
	}
	if now-w.at > witnessOldest {
		*w = witness{total: health.Histogram{
			Known: true, Bounds: walBounds(), Counts: make([]uint64, len(walBounds())+1),
		}}
	}
	first := w.at == 0
	w.at = now
	if first {
		w.recent.Take(now, w.copied(), witnessSpan)
		return
	}
	if w.draw(now, d, rng) >= limit {
		w.slowAt = now
	}
	grown, _ := w.recent.Take(now, w.copied(), witnessSpan)
	w.p99 = slowFsyncs(grown, limit)
	switch {
	case w.p99 == 0, w.slowAt == 0, now-w.slowAt >= witnessClean:
		w.begun = 0
	case w.begun == 0:
		w.begun = now
	}
}

// draw adds the fsyncs of ten seconds. It returns the lower bound of the bucket that contains the slowest fsync.
func (w *witness) draw(now time.Duration, d *simulatedDisk, rng *rand.Rand) (worst time.Duration) {
	for left := witnessEvery; left > 0; {
		took, _, _ := d.took(now-left, true, rng)
		left -= max(took, time.Second/walRate)
		i := 0
		for i < len(w.total.Bounds) && took.Seconds() > w.total.Bounds[i] {
			i++
		}
		w.total.Counts[i]++
		if i > 0 {
			worst = max(worst, seconds(w.total.Bounds[i-1]))
		}
	}
	return worst
}

func (w *witness) copied() health.Histogram {
	h := w.total
	h.Counts = append([]uint64(nil), w.total.Counts...)
	return h
}

// slowFsyncs returns the p99 if it is certainly over the limit, otherwise 0.
func slowFsyncs(grown health.Histogram, limit time.Duration) time.Duration {
	const fewest, few = 100, 20
	p99, _ := grown.Quantile(990)
	middle, _ := grown.Quantile(500)
	switch n := grown.Count(); {
	case n < few, n < fewest && middle.Over < limit, p99.Over < limit:
		return 0
	}
	return max(p99.Over, p99.Upto)
}

// fsyncs returns the current evidence.
func (w *witness) fsyncs(now time.Duration) policy.Fsyncs {
	if w.at == 0 || now-w.at > witnessOldest {
		return policy.Fsyncs{Absent: "its etcd has not answered for a while"}
	}
	f := policy.Fsyncs{Known: true, Age: now - w.at, P99: w.p99}
	if w.begun != 0 {
		f.SlowFor = max(1, now-w.begun)
	}
	return f
}
