// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

// Bounds of a read. A request can limit the number of keys in an answer, not its size. Any user with write access below
// quorumd's prefix can make every value as large as etcd accepts, so keys are read in small pages.
const (
	pageKeys    = 32        // maximum keys of a page
	answerBytes = 4 << 20   // largest answer; a larger one is refused unread, and requested again in smaller pages
	valueBytes  = 128 << 10 // largest value; a larger one is skipped
	skipBytes   = 12 << 20  // a read stops after this many bytes of larger values, which the next read skips
	readKeys    = 50_000    // maximum keys of one read
	readBytes   = 64 << 20
	skipRanges  = 48 // maximum remembered ranges of skipped keys
	skipFor     = 10 * time.Minute
)

// skipped is a range of keys that all had oversized values when last read. They are not read again until their number
// changes or the entry expires.
type skipped struct {
	first, last string
	found       []Pair // the skipped keys, without values
	until       time.Time
}

func (s skipped) end() string { return s.last + "\x00" }

// skips holds a client's skipped ranges, sorted by their first key, and its page size.
type skips struct {
	mu    sync.Mutex
	known []skipped
	page  int
}

// of returns the skipped ranges within a span.
func (s *skips) of(span Span, now time.Time) (out []skipped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = slices.DeleteFunc(s.known, func(k skipped) bool { return now.After(k.until) })
	for _, k := range s.known {
		if span.Start <= k.first && k.last < span.End {
			out = append(out, k)
		}
	}
	return out
}

// forget drops a range that has changed.
func (s *skips) forget(first string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = slices.DeleteFunc(s.known, func(k skipped) bool { return k.first == first })
}

// add adds a run of adjacent keys, and drops the ranges that it contains.
func (s *skips) add(found []Pair, until time.Time) {
	if len(found) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := skipped{first: found[0].Key, last: found[len(found)-1].Key, found: found, until: until}
	s.known = slices.DeleteFunc(s.known, func(k skipped) bool { return next.first <= k.first && k.last <= next.last })
	s.known = append(s.known, next)
	slices.SortFunc(s.known, func(x, y skipped) int { return strings.Compare(x.first, y.first) })
	if len(s.known) > skipRanges {
		s.known = s.known[:skipRanges]
	}
}

func (s *skips) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(max(s.page, 1), pageKeys)
}

func (s *skips) resize(page int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = min(max(page, 1), pageKeys)
}

// reading is one read of a client, at one revision.
type reading struct {
	c        *Client
	at       string // endpoint of the only member to read from; if empty, any voter that answers
	out      Range
	bytes    int       // kept bytes
	oversize int       // skipped bytes
	huge     bool      // the next key was read without its value, which exceeds answerBytes
	run      []Pair    // adjacent oversized keys, without values
	until    time.Time // when the run must be read again
}

// add adds a pair, and omits a value over the limit. It reports whether it omitted the value.
func (r *reading) add(kv *mvccpb.KeyValue) (over bool) {
	p := Pair{
		Key: string(kv.Key), Value: kv.Value, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
		Lease: kv.Lease,
	}
	switch {
	case r.huge:
		p.Oversized, r.huge = answerBytes, false
	case len(kv.Value) > valueBytes:
		p.Value, p.Oversized = nil, len(kv.Value)
	}
	r.oversize += p.Oversized
	r.bytes += len(p.Key) + len(p.Value)
	r.out.Pairs = append(r.out.Pairs, p)
	return p.Oversized > 0
}

// full reports whether a read has reached one of its bounds.
func (r *reading) full() bool {
	return r.oversize > skipBytes || r.bytes > readBytes || len(r.out.Pairs) > readKeys
}

// flush adds the current run of oversized keys to the keys that later reads skip.
func (r *reading) flush() {
	if r.until.IsZero() && len(r.run) > 0 {
		r.until = time.Now().Add(skipFor)
	}
	r.c.skips.add(r.run, r.until)
	r.run, r.until = nil, time.Time{}
}

// span reads a span page by page, except for the ranges known to be oversized.
func (r *reading) span(ctx context.Context, span Span) error {
	start := span.Start
	for _, k := range r.c.skips.of(span, time.Now()) {
		n, err := r.count(ctx, k)
		if err != nil {
			return err
		}
		if n != len(k.found) {
			r.c.skips.forget(k.first)
			continue
		}
		if err := r.pages(ctx, start, k.first); err != nil || r.out.Rest != "" {
			return err
		}
		r.out.Pairs = append(r.out.Pairs, k.found...)
		r.run = append(r.run, k.found...)
		if r.until.IsZero() || k.until.Before(r.until) {
			r.until = k.until
		}
		start = k.end()
	}
	err := r.pages(ctx, start, span.End)
	r.flush()
	return err
}

func (r *reading) count(ctx context.Context, k skipped) (int, error) {
	answer, err := r.get(ctx, k.first, clientv3.WithRange(k.end()), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(answer.Count), nil
}

// pages reads the keys from start to end, excluding end, page by page.
func (r *reading) pages(ctx context.Context, start, end string) error {
	for start < end {
		if r.full() {
			r.out.Rest = start
			r.flush()
			return nil
		}
		size := r.c.skips.size()
		answer, err := r.get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(int64(size)))
		switch {
		case tooLarge(err) && size > 1:
			r.c.skips.resize(size / 4)
			continue
		case tooLarge(err): // a single value exceeds answerBytes
			answer, err = r.get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
			r.huge = err == nil
		}
		if err != nil {
			return err
		}
		if len(answer.Kvs) == 0 {
			return nil
		}
		start = r.take(answer.Kvs, size)
		if !answer.More {
			return nil
		}
	}
	return nil
}

// take adds a page, adjusts the size of later pages, and returns where the next one begins.
func (r *reading) take(kvs []*mvccpb.KeyValue, size int) (next string) {
	over := 0
	for _, kv := range kvs {
		if !r.add(kv) {
			r.flush()
			continue
		}
		over++
		r.run = append(r.run, r.out.Pairs[len(r.out.Pairs)-1])
	}
	if over > 0 {
		r.c.skips.resize(size / 4)
	} else {
		r.c.skips.resize(size * 2)
	}
	return string(kvs[len(kvs)-1].Key) + "\x00"
}

// askAt calls the endpoint of the reading if it has one, otherwise any voter that answers.
func askAt[T any](ctx context.Context, r *reading, call func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	if r.at != "" {
		return once(ctx, r.c, r.at, call)
	}
	return ask(ctx, r.c, call)
}

// get reads at the revision of the reading, if that is known already.
func (r *reading) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if r.out.Revision != 0 { // the content at a revision is the same on every voter that has reached it
		options = append(options, clientv3.WithRev(r.out.Revision))
	}
	if r.out.Revision != 0 || r.at != "" {
		options = append(options, clientv3.WithSerializable())
	}
	answer, err := askAt(ctx, r, func(ctx context.Context, conn *clientv3.Client) (*clientv3.GetResponse, error) {
		return conn.Get(ctx, key, options...)
	})
	if err == nil && r.out.Revision == 0 {
		r.out.Revision = answer.Header.GetRevision()
	}
	return answer, err
}

// one reads a single key, without its value if that exceeds answerBytes.
func (r *reading) one(ctx context.Context, key string) error {
	answer, err := r.get(ctx, key)
	if tooLarge(err) {
		answer, err = r.get(ctx, key, clientv3.WithKeysOnly())
		r.huge = err == nil
	}
	if err != nil {
		return err
	}
	for _, kv := range answer.Kvs {
		r.add(kv)
	}
	return nil
}

// readPaged reads the spans one after another, page by page, because one answer for all of them could be too large.
func (r *reading) readPaged(ctx context.Context, spans []Span) (Range, error) {
	*r = reading{c: r.c, at: r.at}
	if _, err := r.get(ctx, spans[0].Start, clientv3.WithCountOnly()); err != nil {
		return Range{}, err
	}
	for _, span := range spans {
		var err error
		switch {
		case span.Count:
			var answer *clientv3.GetResponse
			if answer, err = r.get(ctx, span.Start, span.options()...); err == nil {
				r.out.Counted += int(answer.Count)
			}
		case span.First:
			var answer *clientv3.GetResponse
			if answer, err = r.get(ctx, span.Start, span.options()...); err == nil {
				for _, kv := range answer.Kvs {
					r.add(kv)
				}
			}
		case span.End == "":
			err = r.one(ctx, span.Start)
		default:
			err = r.span(ctx, span)
		}
		if err != nil {
			return Range{}, err
		}
	}
	return r.out, nil
}

// tooLarge reports whether this client refused an answer because of its size.
func tooLarge(err error) bool {
	return code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

func compacted(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) }

// ReadLast returns the last limit pairs of a prefix, the last key first. If each key starts with the prefix and a
// number of 16 hexadecimal digits up to the current revision, ReadLast reads few keys that it does not return. etcd
// itself would read all keys to sort them.
func (c *Client) ReadLast(ctx context.Context, prefix string, limit int64) (Range, error) {
	r := &reading{c: c}
	end := clientv3.GetPrefixRangeEnd(prefix)
	count := func(start string) (int64, error) {
		answer, err := r.get(ctx, start, clientv3.WithRange(end), clientv3.WithCountOnly())
		if err != nil {
			return 0, err
		}
		return answer.Count, nil
	}
	start := prefix
	n, err := count(start)
	for low, high := int64(0), r.out.Revision+1; err == nil && n > 2*limit && high-low > 1; {
		middle := low + (high-low)/2
		from := fmt.Sprintf("%s%016x", prefix, middle)
		var after int64
		if after, err = count(from); after >= limit {
			low, n, start = middle, after, from
		} else {
			high = middle
		}
	}
	if err == nil {
		err = r.span(ctx, Span{Start: start, End: end})
	}
	if err != nil {
		return Range{}, err
	}
	slices.Reverse(r.out.Pairs)
	r.out.Pairs = r.out.Pairs[:min(len(r.out.Pairs), int(limit))]
	return r.out, nil
}
