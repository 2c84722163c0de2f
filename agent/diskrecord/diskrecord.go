// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package diskrecord decides which measurements of a host's disk its record in etcd shows. A change of the record is
// a write to etcd, so the package promises:
//
//   - A published figure is rounded. A change that chance may explain is published after ten minutes at the earliest,
//     or not at all.
//   - Measurements that only other hosts need are published only while another host's record requests them. They are
//     published rarely, even if a record requests them often, because that record may be forged.
package diskrecord

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// Asked states which measurements other hosts request now.
type Asked struct {
	Mean    bool // the mean duration of this host's writes; requested while the leader is slow
	Figures bool // median, 90th percentile and slow episodes of these writes; requested to compare disks
}

// Publisher holds the measurements that the record shows.
type Publisher struct {
	p99     fsyncP99
	mean    writeMean
	figures writeFigures
}

// New returns the Publisher of a host that has published nothing yet.
func New() *Publisher {
	return &Publisher{
		mean:    writeMean{budget: rate.NewLimiter(rate.Every(meanRefill), meanBudget)},
		figures: writeFigures{budget: rate.NewLimiter(rate.Every(figuresRefill), figuresBudget)},
	}
}

// Set sets the measurements in a host's record. now and wall are the time of the assessment, since boot and by the wall
// clock.
func (p *Publisher) Set(h *record.Host, now time.Duration, wall time.Time, a health.Assessment, asked Asked) {
	h.FsyncP99 = p.p99.steady(now, a.Figures.WAL.P99, a.State)
	p.mean.set(h, now, wall, a.Writes, asked.Mean)
	p.figures.set(h, now, wall, a.Writes, asked.Figures)
}

// mayPublish reports whether a budget allows a publication now, and if so, counts the publication. now is the time
// since boot.
func mayPublish(budget *rate.Limiter, now time.Duration) bool {
	return budget.AllowN(time.Unix(0, int64(now)), 1)
}
