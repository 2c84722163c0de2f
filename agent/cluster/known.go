// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// mostKnown bounds the endpoints that are kept. Those that are configured and those of the last answer come first.
const mostKnown = 128

// known are the endpoints that were discovered beside those that are configured.
type known struct {
	all  []string // that an answer ever had, those of the last one first
	last int      // so many the last answer had
	err  error    // why there is no answer now
}

// ErrNotDiscovered is why the endpoints are not known that are to be discovered.
var ErrNotDiscovered = errors.New("the endpoints have not been discovered")

// Discovered takes in an answer to where members may be, or why there is none. It adds to what is known: whoever was
// named once is asked when nobody else answers, as is whoever is configured.
func (c *Client) Discovered(endpoints []string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.err = err; err != nil {
		return
	}
	c.known.last = len(endpoints)
	all := slices.Clone(endpoints)
	for _, before := range c.known.all {
		if !slices.Contains(all, before) {
			all = append(all, before)
		}
	}
	c.known.all = all[:min(len(all), mostKnown)]
}

// LastDiscovered gives how many endpoints the last answer had that could be used, and why there is none now; asked says
// that there was one, or should have been.
func (c *Client) LastDiscovered() (n int, asked bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.last, c.known.last > 0 || c.known.err != nil, c.known.err
}

// Known gives where a member may be: what is configured, and what was ever discovered. The error says that the list may
// lack some, since there is no answer now.
func (c *Client) Known() ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.knownLocked()
	switch {
	case c.known.err != nil:
		return list, fmt.Errorf("%w: %w", ErrNotDiscovered, c.known.err)
	case c.opt.Discovers && len(c.known.all) == 0:
		return list, ErrNotDiscovered
	}
	return list, nil
}

func (c *Client) knownLocked() []string {
	list := slices.Clone(c.opt.Endpoints)
	for _, endpoint := range c.known.all {
		if !slices.Contains(list, endpoint) {
			list = append(list, endpoint)
		}
	}
	return list
}
