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
)

const (
	maxScrape   = 16 * mebibyte
	scrapeBound = 10 * time.Second
)

// scraped is the response of a metrics endpoint.
type scraped struct {
	text []byte
	took time.Duration
}

// scrape reads an endpoint as Prometheus does, but without compression, to measure the size of the text.
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

// scrapeHistogram reads one histogram. If lane is not empty, it selects the histogram whose label lane has that value.
func scrapeHistogram(ctx context.Context, url, name, lane string) (histogram, error) {
	got, err := scrape(ctx, url)
	if err != nil {
		return histogram{}, err
	}
	return parseHistogram(got.text, name, lane)
}

func parseHistogram(text []byte, name, lane string) (histogram, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return histogram{}, fmt.Errorf("cannot read the metrics: %w", err)
	}
	for _, m := range families[name].GetMetric() {
		fits := lane == ""
		for _, l := range m.GetLabel() {
			fits = fits || l.GetName() == "lane" && l.GetValue() == lane
		}
		if fits && m.GetHistogram() != nil {
			h := histogram{sum: m.GetHistogram().GetSampleSum()}
			for _, b := range m.GetHistogram().GetBucket() {
				h.buckets = append(h.buckets, bucket{upTo: b.GetUpperBound(), count: float64(b.GetCumulativeCount())})
			}
			return h, nil
		}
	}
	return histogram{}, fmt.Errorf("there is no histogram %s", name)
}

// histogram counts, for each bound, the values up to it; the last bound is infinite.
type histogram struct {
	buckets []bucket
	sum     float64 // sum of all values
}

type bucket struct{ upTo, count float64 }

// since returns the counts since an earlier reading.
func (h histogram) since(earlier histogram) histogram {
	later := histogram{slices.Clone(h.buckets), h.sum - earlier.sum}
	for i := range later.buckets {
		b := &later.buckets[i]
		if j := slices.IndexFunc(earlier.buckets, func(e bucket) bool { return e.upTo == b.upTo }); j >= 0 {
			b.count -= earlier.buckets[j].count
		}
	}
	return later
}

// withBounds returns the histogram with only those buckets whose bounds the other histogram also has.
func (h histogram) withBounds(other histogram) histogram {
	return histogram{slices.DeleteFunc(slices.Clone(h.buckets), func(b bucket) bool {
		return !slices.ContainsFunc(other.buckets, func(o bucket) bool { return o.upTo == b.upTo })
	}), h.sum}
}

func (h histogram) count() float64 {
	if len(h.buckets) == 0 {
		return 0
	}
	return h.buckets[len(h.buckets)-1].count
}

// mean returns NaN if nothing was counted.
func (h histogram) mean() float64 { return h.sum / h.count() }

// bucketOf returns the upper bound of the bucket that contains a quantile.
func (h histogram) bucketOf(q float64) float64 {
	for _, b := range h.buckets {
		if b.count > 0 && b.count >= q*h.count() {
			return b.upTo
		}
	}
	return math.Inf(1)
}

// quantile estimates a quantile as Prometheus' histogram_quantile does: it interpolates within a bucket, and returns
// the last finite bound for everything above it.
func (h histogram) quantile(q float64) float64 {
	rank, lower, below := q*h.count(), 0.0, 0.0
	for _, b := range h.buckets {
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
