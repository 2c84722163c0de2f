// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery asks periodically where the members of the cluster may be: DNS, a file, or a program.
//
// It promises:
//   - One lookup at a time, bounded in time, bytes and count. A lookup that does not end in time is reported, and no
//     second one is started meanwhile.
//   - An answer is accepted as a whole or not at all: one entry that is not an endpoint of the wanted scheme refuses
//     it.
//   - An answer that fails, is empty or is shorter than the previous one removes no endpoint. Only etcd decides who is
//     a member; this package finds where to ask.
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
	// MostEndpoints bounds an answer.
	MostEndpoints = 64
	// MostBytes bounds the bytes read for an answer.
	MostBytes = 8 << 10

	longestURL = 300 // a DNS name has 253 at most
)

// Source returns the current endpoints, unchecked. It may outlive its context, as a read of a file on a hung disk does.
type Source func(ctx context.Context) ([]string, error)

// Options configure what to ask and how often.
type Options struct {
	Source   Source
	Scheme   string // http or https: of the configured endpoints
	Interval time.Duration
	Timeout  time.Duration
	// Tell is called with every answer: the sorted endpoints, or the error.
	Tell   func(endpoints []string, err error)
	Logger *slog.Logger
}

// Run asks until the context ends.
func Run(ctx context.Context, opt Options) {
	tick := time.NewTicker(opt.Interval)
	defer tick.Stop()
	var pending chan answer
	var before answer
	for first := true; ; first = false {
		var got answer
		if got, pending = look(ctx, opt, pending); ctx.Err() != nil {
			return
		}
		opt.Tell(got.endpoints, got.err)
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

// look starts a lookup or waits for the pending one. It returns that one if it still has not ended.
func look(ctx context.Context, opt Options, pending chan answer) (answer, chan answer) {
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
	select { // a source that honours the context returns an error of its own
	case got := <-pending:
		return got, nil
	default:
		return answer{err: fmt.Errorf("the lookup did not finish within %s", durationfmt.Text(opt.Timeout))}, pending
	}
}

// Accept returns an answer sorted and without duplicates, or why it is refused as a whole.
func Accept(found []string, scheme string) ([]string, error) {
	if len(found) == 0 {
		return nil, errors.New("the answer is empty, which does not prove that there is no cluster")
	}
	if len(found) > MostEndpoints {
		return nil, fmt.Errorf("the answer has %d endpoints, the maximum is %d", len(found), MostEndpoints)
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
	if err != nil || len(text) > longestURL {
		return errors.New("is not a URL as in " + scheme + "://192.0.2.1:2379")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case u.Scheme != scheme:
		return errors.New("is not " + scheme + ", as cluster.endpoints are")
	case err != nil || port == 0 || u.Hostname() == "" || text != scheme+"://"+u.Host:
		return errors.New("is not a URL as in " + scheme + "://192.0.2.1:2379")
	}
	return nil
}
