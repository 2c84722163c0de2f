// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery periodically looks up endpoints where members of the cluster may be, in DNS, a file, or the output
// of a program. It promises:
//
//   - Only one lookup runs at a time. A lookup that exceeds its time limit is reported as failed, and the next lookup
//     starts only after it has ended.
//   - An answer has a maximum length. It is refused as a whole if one entry is not an endpoint with the scheme of the
//     configured endpoints.
//   - A lookup that fails, or whose answer is empty or shorter than before, removes no endpoint. Only etcd decides
//     which hosts are members. This package finds endpoints to query.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

const (
	// MaxEndpoints is the maximum number of endpoints in an answer.
	MaxEndpoints = 64
	// MaxBytes bounds the bytes read for an answer.
	MaxBytes = 8 << 10

	maxURL = 300 // a DNS name has at most 253 characters
)

// Source returns the current endpoints, unchecked. A call can return long after its context has ended, for example if
// it reads a file on a hung disk.
type Source func(ctx context.Context) ([]string, error)

// Options configure the source and the frequency of lookups.
type Options struct {
	Source   Source
	Scheme   string // scheme of the configured endpoints: http or https
	Interval time.Duration
	Timeout  time.Duration
	// Report is called with the sorted endpoints or the error of every lookup. A lookup that times out is an error.
	Report func(endpoints []string, err error)
	Logger *slog.Logger
}

// Run looks up endpoints until the context ends.
func Run(ctx context.Context, opt Options) {
	tick := time.NewTicker(opt.Interval)
	defer tick.Stop()
	var pending chan answer
	var before answer
	for first := true; ; first = false {
		var got answer
		if got, pending = lookup(ctx, opt, pending); ctx.Err() != nil {
			return
		}
		opt.Report(got.endpoints, got.err)
		if first || got.text() != before.text() {
			got.log(opt.Logger)
		}
		before = got
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// answer is the result of a lookup.
type answer struct {
	endpoints []string
	err       error
}

func (a answer) text() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprint(a.endpoints)
}

func (a answer) log(log *slog.Logger) {
	if a.err != nil {
		log.Warn("endpoint discovery failed; keeping the known endpoints", "error", a.err)
		return
	}
	log.Info("discovered endpoints", "endpoints", a.endpoints)
}

// lookup starts a lookup or waits for the pending one. The second result is the lookup if it is still pending,
// otherwise nil.
func lookup(ctx context.Context, opt Options, pending chan answer) (answer, chan answer) {
	ctx, cancel := context.WithTimeout(ctx, opt.Timeout)
	defer cancel()
	if pending == nil {
		pending = make(chan answer, 1)
		into := pending
		go func() {
			found, err := opt.Source(ctx)
			if err == nil {
				found, err = Accept(found, opt.Scheme)
			}
			into <- answer{found, err}
		}()
	}
	select {
	case got := <-pending:
		return got, nil
	case <-ctx.Done():
	}
	select { // prefer the error of a source that honours the context
	case got := <-pending:
		return got, nil
	default:
		return answer{err: fmt.Errorf("the lookup did not finish within %s", durationfmt.Text(opt.Timeout))}, pending
	}
}

// Accept returns the endpoints of an answer, sorted and without duplicates, or the reason why the answer is refused.
func Accept(found []string, scheme string) ([]string, error) {
	if len(found) == 0 {
		return nil, errors.New("the answer is empty, which does not prove that there is no cluster")
	}
	if len(found) > MaxEndpoints {
		return nil, fmt.Errorf("the answer has %d endpoints; the maximum is %d", len(found), MaxEndpoints)
	}
	for _, text := range found {
		if err := check(text, scheme); err != nil {
			return nil, fmt.Errorf("the answer is refused: %.80q %w", text, err)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(found))), nil
}

func check(text, scheme string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL {
		return errors.New("is not a URL like " + scheme + "://192.0.2.1:2379")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case u.Scheme != scheme:
		return errors.New("does not use " + scheme + ", the scheme of cluster.endpoints")
	case err != nil || port == 0 || u.Hostname() == "" || text != scheme+"://"+u.Host:
		return errors.New("is not a URL like " + scheme + "://192.0.2.1:2379")
	}
	return nil
}
