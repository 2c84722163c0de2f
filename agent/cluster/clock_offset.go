// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// ErrNoClock means that no member reports its time.
var ErrNoClock = errors.New("no member reports its time")

// ClockOffset returns the median offset of this host's wall clock from the clocks of the members that answer; it is
// positive if this host's clock is ahead. The Date header of etcd's HTTP server has a resolution of one second, so
// offsets below two seconds are not significant.
func (c *Client) ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error) {
	transport := &http.Transport{TLSClientConfig: c.tls.config(), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: c.opt.CallTimeout}
	var offsets []time.Duration
	var errs []error
	for _, endpoint := range c.endpoints() {
		offset, err := clockOffset(ctx, web, endpoint, wall)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		offsets = append(offsets, offset)
	}
	if len(offsets) == 0 {
		return 0, fmt.Errorf("%w: %w", ErrNoClock, joinErrors(errs...))
	}
	slices.Sort(offsets)
	return offsets[len(offsets)/2], nil
}

func clockOffset(ctx context.Context, web *http.Client, endpoint string, wall func() time.Time) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/version", nil)
	if err != nil {
		return 0, err
	}
	before := wall()
	answer, err := web.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close() // the body is not read
	after := wall()
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("%s sends no usable Date header: %w", endpoint, err)
	}
	middle := before.Add(after.Sub(before) / 2)
	return middle.Sub(theirs.Add(500 * time.Millisecond)), nil // the header omits the fraction of the second
}
