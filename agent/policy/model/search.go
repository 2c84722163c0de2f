// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// search explores the small worlds of a quorum loss or a rollout breadth-first.
type search[W comparable] struct {
	initial    W
	successors func(w *W) []successor[W]
	liveness   func(w *W) uint8 // the breach in the liveness run from w; 0 for none
	promise    func(breach uint8) promise
	text       func(w *W) string
}

// successor is a world that can follow another one, with the event that leads to it. breach is 0 if the event breaks no
// promise.
type successor[W comparable] struct {
	world  W
	event  string
	breach uint8
}

// discovery holds the predecessor, the event and the depth of the first discovery of a world.
type discovery[W comparable] struct {
	world W
	event string
	depth int
}

// explore searches until it reaches the fixpoint, the first breach or, if most is not 0, that many states, or until the
// context ends.
func (k search[W]) explore(ctx context.Context, most int, r *Result) {
	began := time.Now()
	found := map[W]discovery[W]{k.initial: {}}
	defer func() { r.States, r.Took = len(found), time.Since(began) }()
	for list := []W{k.initial}; len(list) > 0; list = list[1:] {
		w := list[0]
		if ctx.Err() != nil || most > 0 && len(found) >= most {
			return
		}
		r.Depth = found[w].depth
		if b := k.liveness(&w); b != 0 {
			r.Breach = k.breach(found, w, "", b)
			return
		}
		for _, n := range k.successors(&w) {
			r.Transitions++
			if n.breach != 0 {
				r.Breach = k.breach(found, w, fmt.Sprintf("%s\n%s", n.event, k.text(&n.world)), n.breach)
				return
			}
			if _, known := found[n.world]; !known {
				found[n.world] = discovery[W]{w, n.event, found[w].depth + 1}
				list = append(list, n.world)
			}
		}
	}
	r.Complete = true
}

// breach returns a breach with its trace.
func (k search[W]) breach(found map[W]discovery[W], at W, last string, b uint8) *Breach {
	lines := []string{last}
	for {
		f := found[at]
		lines = append(lines, fmt.Sprintf("%s\n%s", f.event, k.text(&at)))
		if f.depth == 0 {
			break
		}
		at = f.world
	}
	slices.Reverse(lines)
	p := k.promise(b)
	return &Breach{Promise: p.name, Text: p.text, Trace: strings.Join(lines, "\n")}
}
