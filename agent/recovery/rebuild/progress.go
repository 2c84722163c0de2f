// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// Progress counts the bytes of a copy while it is made. A nil Progress counts nothing.
type Progress struct{ done, all atomic.Int64 }

// add counts n bytes as done.
func (p *Progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// expect sets the total to n bytes more than are done.
func (p *Progress) expect(n int64) {
	if p != nil {
		p.all.Store(p.done.Load() + n)
	}
}

// progressLine is a line of a child's output with its progress. The last line is the answer, and has no such field.
type progressLine struct {
	Copied *int64 `json:"copied,omitempty"`
	All    int64  `json:"all"`
}

// reportInterval is how often a child reports its progress.
const reportInterval = time.Second

// report writes the progress until the context ends.
func (p *Progress) report(ctx context.Context, w io.Writer) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	lines := json.NewEncoder(w)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if all := p.all.Load(); all > 0 {
			done := p.done.Load()
			if lines.Encode(progressLine{&done, all}) != nil {
				return // no process reads the reports any longer
			}
		}
	}
}

// maxAnswer bounds a line of a child, in bytes.
const maxAnswer = 1 << 20

// childOutput receives a child's output: it passes on the lines with progress, and keeps the answer.
type childOutput struct {
	progress func(done, all int64) // may be nil
	line     []byte                // an incomplete line
	last     []byte                // the answer
}

func (a *childOutput) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if len(a.line)+len(line) > maxAnswer {
			return 0, errors.New("a line of a child's output is too long")
		}
		a.line = append(a.line, line...)
		if rest = after; ended {
			a.handleLine()
		}
	}
	return len(p), nil
}

// handleLine handles a complete line.
func (a *childOutput) handleLine() {
	var line progressLine
	switch err := json.Unmarshal(a.line, &line); {
	case err != nil || line.Copied == nil:
		a.last = append([]byte(nil), a.line...)
	case a.progress != nil:
		a.progress(*line.Copied, line.All)
	}
	a.line = a.line[:0]
}
