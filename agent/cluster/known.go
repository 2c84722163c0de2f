// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// maxKnown bounds the discovered endpoints that are kept. Those of the last answer have priority.
const maxKnown = 128

// discovered holds the discovered endpoints.
type discovered struct {
	all  []string // endpoints of all answers; those of the last answer come first
	last int      // number of endpoints in the last answer
	err  error    // why there is no current answer
}

// ErrNotDiscovered means that discovery has no current answer.
var ErrNotDiscovered = errors.New("the endpoints have not been discovered")

// Discovered adds discovered endpoints, or records why discovery failed. Earlier endpoints stay known, like the
// configured ones: they are tried if no other endpoint answers.
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
	c.known.all = all[:min(len(all), maxKnown)]
}

// LastDiscovered returns the number of endpoints in the last successful answer, and the error of the last lookup. ran
// reports whether any lookup has ended.
func (c *Client) LastDiscovered() (n int, ran bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.last, c.known.last > 0 || c.known.err != nil, c.known.err
}

// Known returns the configured and the discovered endpoints. The error means that some may be missing, because the last
// lookup failed, or none has ended yet.
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
