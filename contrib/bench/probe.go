// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// probeFor is how long the probe and etcd measure beside each other, and probeEvery how often the probe does: more
	// often than the 10 s it is shipped with, because a p99 needs some hundred writes.
	probeFor   = time.Minute
	probeEvery = 200 * time.Millisecond

	etcdFsync  = "etcd_disk_wal_fsync_duration_seconds"
	probeFsync = "quorumd_disk_fsync_duration_seconds"

	maxScrape   = 16 * mebibyte
	scrapeBound = 10 * time.Second
)

// probeBesideEtcd has both measure the same disk in the same minute.
func probeBesideEtcd(s *site) (plain, quorumd values, err error) {
	f, err := s.form(1, true, map[string]string{"disk.walInterval": probeEvery.String()})
	if err != nil {
		return nil, nil, err
	}
	o := f.hosts[0].Options
	load, err := testbed.StartWriteLoad(s.ctx, testbed.LoadOptions{Endpoints: []string{o.ClientURL}, Rate: 50})
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
	if err := s.pass(probeFor); err != nil {
		return nil, nil, err
	}
	after, err := look()
	if err != nil {
		return nil, nil, err
	}
	var sides [2]values
	for i := range sides {
		h := after[i].since(before[i])
		if h.count() == 0 {
			return nil, nil, fmt.Errorf("%s has counted nothing in %v", sources[i].name, probeFor)
		}
		sides[i] = values{
			fsyncMiddle: 1000 * h.quantile(0.5), fsyncTail: 1000 * h.quantile(0.99), fsyncs: h.count(),
		}
	}
	return sides[0], sides[1], nil
}

// scraped is what a metrics address answered.
type scraped struct {
	text []byte
	took time.Duration
}

// scrape asks as Prometheus does, but for the compression, so that the size is that of the text.
func scrape(ctx context.Context, url string) (scraped, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeBound)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return scraped{}, err
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	began := time.Now()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return scraped{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxScrape))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return scraped{text: text, took: time.Since(began)}, err
}

// scrapeHistogram reads one histogram, with this label "lane" if it is not empty.
func scrapeHistogram(ctx context.Context, url, name, lane string) (histogram, error) {
	got, err := scrape(ctx, url)
	if err != nil {
		return nil, err
	}
	return parseHistogram(got.text, name, lane)
}

func parseHistogram(text []byte, name, lane string) (histogram, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	for _, m := range families[name].GetMetric() {
		fits := lane == ""
		for _, l := range m.GetLabel() {
			fits = fits || l.GetName() == "lane" && l.GetValue() == lane
		}
		if fits && m.GetHistogram() != nil {
			var h histogram
			for _, b := range m.GetHistogram().GetBucket() {
				h = append(h, bucket{upTo: b.GetUpperBound(), count: float64(b.GetCumulativeCount())})
			}
			return h, nil
		}
	}
	return nil, fmt.Errorf("there is no histogram %s", name)
}

// histogram counts, for each of its bounds, how many values were up to it; the last bound is infinite.
type histogram []bucket

type bucket struct{ upTo, count float64 }

// since gives what has been counted after an earlier look.
func (h histogram) since(earlier histogram) histogram {
	later := slices.Clone(h)
	for i := range later {
		j := slices.IndexFunc(earlier, func(b bucket) bool { return b.upTo == later[i].upTo })
		if j >= 0 {
			later[i].count -= earlier[j].count
		}
	}
	return later
}

func (h histogram) count() float64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].count
}

// quantile estimates as Prometheus' histogram_quantile does: evenly within a bucket, and the last finite bound for what
// lies beyond it.
func (h histogram) quantile(q float64) float64 {
	rank, lower, below := q*h.count(), 0.0, 0.0
	for _, b := range h {
		if b.count >= rank && b.count > below {
			if math.IsInf(b.upTo, 1) {
				return lower
			}
			return lower + (b.upTo-lower)*(rank-below)/(b.count-below)
		}
		lower, below = b.upTo, b.count
	}
	return lower
}
