// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/words"
)

// watchStatus shows the status until the context ends.
func (a *app) watchStatus(ctx context.Context, interval time.Duration) error {
	return a.watch(ctx, "quorumctl status", interval, func(s control.Status) ([]byte, bool, error) {
		b, err := a.render(s, func(p *page) {
			writeStatus(p, s)
			p.raw("")
			p.line("%s", words.Stamp(s.Time))
		})
		return b, false, err
	})
}

// watch shows one frame after another until the context ends, or until show says that one is the
// last. A daemon that goes away while it is watched is shown as that, for it may be restarting.
func (a *app) watch(ctx context.Context, command string, interval time.Duration,
	show func(control.Status) (frame []byte, last bool, err error),
) error {
	if interval < 100*time.Millisecond {
		return usage(command+" --watch --interval 1s", "cannot watch: an interval of %s is too short", interval)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for first := true; ; first = false {
		s, err := a.client().Status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		gone, isControl := errors.AsType[*control.Error](err)
		last := false
		switch {
		case err == nil:
			var frame []byte
			if frame, last, err = show(s); err == nil {
				err = a.write(a.over(frame, first))
			}
		case !first && isControl && exitCode(gone) == exitUnavailable:
			err = a.gap(gone)
		default:
			err = cannot("watch the status", err)
		}
		if err != nil || last {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// gap shows that there is no status now. Programs get nothing: a document that is missing says it.
func (a *app) gap(gone *control.Error) error {
	if a.format == formatJSON || a.format == formatYAML {
		return nil
	}
	p := &page{coloured: a.coloured()}
	p.line("%s", word{gone.Message, bad})
	p.line("→ %s", gone.Hint)
	return a.write(a.over([]byte(p.String()), false))
}

// over puts a frame over the last one on a terminal, without flicker: from the top, each line
// cleared to its end, and then the rest below. Elsewhere it comes after the last one.
func (a *app) over(frame []byte, first bool) []byte {
	text := string(frame)
	switch {
	case a.format == formatYAML && !first:
		text = "---\n" + text
	case a.format == formatYAML || a.format == formatJSON:
	case isTerminal(a.out):
		text = "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
	case !first:
		text = "\n" + text
	}
	return []byte(text)
}
