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

// walk explores small worlds breadth-first: one kind for clusters after quorum loss, one for rollouts.
type walk[W comparable] struct {
	first  W
	follow func(w *W) []next[W]
	rests  func(w *W) uint8 // the breach in its run to rest; 0 for none
	tell   func(breach uint8) promise
	text   func(w *W) string
}

// next is a world that may follow, with the event that leads to it and the breach; 0 for none.
type next[W comparable] struct {
	world W
	what  string
	found uint8
}

// from is how a world was found.
type from[W comparable] struct {
	world W
	what  string
	depth int
}

// explore ends at the fixpoint, at the first breach, at most states if most is not 0, or with its context.
func (k walk[W]) explore(ctx context.Context, most int, r *Result) {
	began := time.Now()
	found := map[W]from[W]{k.first: {}}
	defer func() { r.States, r.Took = len(found), time.Since(began) }()
	for list := []W{k.first}; len(list) > 0; list = list[1:] {
		w := list[0]
		if ctx.Err() != nil || most > 0 && len(found) >= most {
			return
		}
		r.Depth = found[w].depth
		if b := k.rests(&w); b != 0 {
			r.Breach = k.breach(found, w, "", b)
			return
		}
		for _, n := range k.follow(&w) {
			r.Transitions++
			if n.found != 0 {
				r.Breach = k.breach(found, w, fmt.Sprintf("%s\n%s", n.what, k.text(&n.world)), n.found)
				return
			}
			if _, known := found[n.world]; !known {
				found[n.world] = from[W]{w, n.what, found[w].depth + 1}
				list = append(list, n.world)
			}
		}
	}
	r.Complete = true
}

// breach describes the way to a breach.
func (k walk[W]) breach(found map[W]from[W], at W, last string, b uint8) *Breach {
	lines := []string{last}
	for {
		f := found[at]
		lines = append(lines, fmt.Sprintf("%s\n%s", f.what, k.text(&at)))
		if f.depth == 0 {
			break
		}
		at = f.world
	}
	slices.Reverse(lines)
	p := k.tell(b)
	return &Breach{Promise: p.name, Text: p.text, Story: strings.Join(lines, "\n")}
}
