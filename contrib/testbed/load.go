// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// LoadOptions describe a load.
type LoadOptions struct {
	Endpoints []string
	TLS       *CertFiles    // certificate of the client; no TLS if nil
	Rate      int           // writes started per second; 100 if 0
	Timeout   time.Duration // timeout of one write; 5 s if 0
	ValueSize int           // bytes per value; 64 if 0
	Prefix    string        // prefix of the keys; "load/" if empty
	// Retry repeats a failed write until Timeout, as a client with idempotent writes does. Each attempt has a fifth of
	// that time: etcd silently loses a write that is forwarded to a leader during a leadership transfer, and does not
	// answer for 7 s. Write.Tries distinguishes such a write from one that was acknowledged at once.
	Retry bool
}

// Write is one write of a WriteLoad.
type Write struct {
	Key      string // no key is used for two writes
	Sent     time.Time
	Acked    time.Time // zero if the write failed or is still in flight
	Revision int64     // revision of the store after the write, if acknowledged
	Tries    int       // number of attempts
	Err      error     // nil if acknowledged or still in flight; a write that failed may still have taken effect
}

// LoadReport is the result of a WriteLoad.
type LoadReport struct {
	Writes []Write // in the order in which they were sent
	Acked  int
	Failed int
	// Retried is the number of acknowledged writes that were sent more than once; Slowest is the longest latency.
	Retried int
	Slowest time.Duration
	// LongestGap is the longest time without an acknowledged write. The beginning and the end of the load count as
	// acknowledged writes. GapBegan is when that gap began.
	LongestGap time.Duration
	GapBegan   time.Time
}

// WriteLoad is an open-loop writer: it starts writes at a steady rate, whether or not earlier ones were answered, so
// that the full length of a pause of the cluster is measured.
type WriteLoad struct {
	options LoadOptions
	client  *clientv3.Client
	began   time.Time
	stop    context.CancelFunc
	stopped sync.WaitGroup // the pacer and the writes in flight

	mu     sync.Mutex
	writes []Write
	ended  time.Time // zero while the load is running
}

// StartWriteLoad writes until ctx ends or Stop is called. Always call Stop.
func StartWriteLoad(ctx context.Context, o LoadOptions) (*WriteLoad, error) {
	if o.Rate <= 0 {
		o.Rate = 100
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.ValueSize <= 0 {
		o.ValueSize = 64
	}
	if o.Prefix == "" {
		o.Prefix = "load/"
	}
	client, err := newClient(o.Endpoints, o.TLS)
	if err != nil {
		return nil, err
	}
	l := &WriteLoad{options: o, client: client, began: time.Now()}
	ctx, l.stop = context.WithCancel(ctx)
	l.stopped.Go(func() { l.pace(ctx) })
	return l, nil
}

// pace starts every write that is due, however late the ticker is.
func (l *WriteLoad) pace(ctx context.Context) {
	value := strings.Repeat("x", l.options.ValueSize)
	interval := time.Second / time.Duration(l.options.Rate)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			l.mu.Lock()
			l.ended = time.Now()
			l.mu.Unlock()
			return
		case <-tick.C:
		}
		for due := int(time.Since(l.began) / interval); sent < due; sent++ {
			key := fmt.Sprintf("%s%08d", l.options.Prefix, sent)
			l.stopped.Go(func() { l.write(key, value) })
		}
	}
}

// write does not use the context of the load, so that a write in flight can complete when the load ends.
func (l *WriteLoad) write(key, value string) {
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Timeout)
	defer cancel()
	w := Write{Key: key, Sent: time.Now()}
	l.mu.Lock()
	index := len(l.writes)
	l.writes = append(l.writes, w)
	l.mu.Unlock()
	for w.Tries++; ; w.Tries++ {
		response, err := l.put(ctx, key, value)
		if w.Err = err; err == nil {
			w.Acked, w.Revision = time.Now(), response.Header.Revision
		}
		if err == nil || !l.options.Retry || !pause(ctx, retryAfter) {
			break
		}
	}
	l.mu.Lock()
	l.writes[index] = w
	l.mu.Unlock()
}

// put makes one attempt at a write.
func (l *WriteLoad) put(ctx context.Context, key, value string) (*clientv3.PutResponse, error) {
	if l.options.Retry {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.options.Timeout/triesPerWrite)
		defer cancel()
	}
	return l.client.Put(ctx, key, value)
}

// triesPerWrite is the minimum number of attempts for a write that never gets an answer.
const triesPerWrite = 5

// retryAfter is the pause between two attempts at a write.
const retryAfter = 10 * time.Millisecond

// pause waits for d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Stop starts no further write, waits for those in flight, and returns the report. It may be called more than once.
func (l *WriteLoad) Stop() LoadReport {
	l.stop()
	l.stopped.Wait()
	l.client.Close()
	return l.Report()
}

// Report returns the report so far.
func (l *WriteLoad) Report() LoadReport {
	l.mu.Lock()
	r := LoadReport{Writes: slices.Clone(l.writes)}
	end := l.ended
	l.mu.Unlock()
	if end.IsZero() {
		end = time.Now()
	}
	var acks []time.Time
	for _, w := range r.Writes {
		switch {
		case !w.Acked.IsZero():
			acks = append(acks, w.Acked)
			r.Slowest = max(r.Slowest, w.Acked.Sub(w.Sent))
			if w.Tries > 1 {
				r.Retried++
			}
		case w.Err != nil:
			r.Failed++
		}
	}
	r.Acked = len(acks)
	r.LongestGap, r.GapBegan = longestGap(acks, l.began, end)
	return r
}

// GapWithin returns the longest time within a period during which no write was acknowledged.
func (r LoadReport) GapWithin(from, to time.Time) time.Duration {
	var acks []time.Time
	for _, w := range r.Writes {
		if w.Acked.After(from) && w.Acked.Before(to) {
			acks = append(acks, w.Acked)
		}
	}
	gap, _ := longestGap(acks, from, to)
	return gap
}

// longestGap returns the longest time without an acknowledged write, and when it began.
func longestGap(acks []time.Time, from, to time.Time) (longest time.Duration, began time.Time) {
	slices.SortFunc(acks, time.Time.Compare)
	last := from
	for _, t := range append(acks, to) {
		if gap := t.Sub(last); gap > longest {
			longest, began = gap, last
		}
		last = t
	}
	return longest, began
}
