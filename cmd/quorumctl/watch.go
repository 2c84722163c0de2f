// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
)

// watchStatus shows the status repeatedly until the context ends.
func (a *app) watchStatus(ctx context.Context, interval time.Duration) error {
	return a.watch(ctx, "quorumctl status", interval, func(s control.Status) ([]byte, bool, error) {
		b, err := a.render(s, func(p *page) {
			writeStatus(p, s)
			p.raw("")
			p.line("%s", display.Timestamp(s.Time))
		})
		return b, false, err
	})
}

// watch shows frames until the context ends or show returns the last one. It continues if quorumd stops answering,
// because quorumd may be restarting.
func (a *app) watch(ctx context.Context, command string, interval time.Duration,
	show func(control.Status) (frame []byte, last bool, err error),
) (err error) {
	if interval < 100*time.Millisecond {
		return usage(command+" --watch --interval 1s", "cannot watch: --interval %s is too short",
			durationfmt.Text(interval))
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	screen := a.newLive()
	defer func() { err = errors.Join(err, screen.end()) }()
	for first := true; ; first = false {
		s, err := a.client().Status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		unreachable, isControl := errors.AsType[*control.Error](err)
		last := false
		frame := func() (text []byte, err error) {
			text, last, err = show(s)
			return text, err
		}
		switch {
		case err == nil:
		case !first && isControl && exitCode(unreachable) == exitUnavailable:
			frame = func() ([]byte, error) { return a.noStatusFrame(unreachable), nil }
		default:
			return cannot("watch the status", err)
		}
		if err := a.showFrame(screen, frame, first); err != nil || last {
			return err
		}
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				waits = false
			case <-screen.sizeChanges():
				if err := screen.draw(frame); err != nil {
					return err
				}
			}
		}
	}
}

// showFrame draws a frame in place on a terminal, and appends it to any other output.
func (a *app) showFrame(screen *live, frame func() ([]byte, error), first bool) error {
	if screen != nil {
		return screen.draw(frame)
	}
	text, err := frame()
	if err != nil || len(text) == 0 {
		return err
	}
	between := ""
	switch {
	case first || a.format == formatJSON:
	case a.format == formatYAML:
		between = "---\n"
	default:
		between = "\n"
	}
	return a.write(append([]byte(between), text...))
}

// noStatusFrame returns a frame with the error, or an empty one for JSON and YAML.
func (a *app) noStatusFrame(unreachable *control.Error) []byte {
	if a.format == formatJSON || a.format == formatYAML {
		return nil
	}
	p := &page{coloured: a.coloured(), maxWidth: a.columns}
	p.line("%s", word{unreachable.Message, bad})
	p.line("→ %s", unreachable.Hint)
	return []byte(p.String())
}
