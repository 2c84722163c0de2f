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

func (p *Progress) did(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// remains adds n bytes still to be copied, or read again.
func (p *Progress) remains(n int64) {
	if p != nil {
		p.all.Store(p.done.Load() + n)
	}
}

// sofar is a line of a child's output with its progress. The answer is the line after them, and has no such field.
type sofar struct {
	Copied *int64 `json:"copied,omitempty"`
	All    int64  `json:"all"`
}

// tellEvery is how often a child reports its progress.
const tellEvery = time.Second

// tell reports the progress until the context ends.
func (p *Progress) tell(ctx context.Context, w io.Writer) {
	tick := time.NewTicker(tellEvery)
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
			if lines.Encode(sofar{&done, all}) != nil {
				return // no process reads the reports any longer
			}
		}
	}
}

// maxAnswer bounds a line of a child, in bytes.
const maxAnswer = 1 << 20

// answer receives a child's output: it passes on the lines with progress, and keeps the one with the answer.
type answer struct {
	progress func(done, all int64) // may be nil
	line     []byte                // an incomplete line
	last     []byte                // the answer
}

func (a *answer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if len(a.line)+len(line) > maxAnswer {
			return 0, errors.New("a child says too much")
		}
		a.line = append(a.line, line...)
		if rest = after; ended {
			a.take()
		}
	}
	return len(p), nil
}

// take handles a complete line.
func (a *answer) take() {
	var so sofar
	switch err := json.Unmarshal(a.line, &so); {
	case err != nil || so.Copied == nil:
		a.last = append([]byte(nil), a.line...)
	case a.progress != nil:
		a.progress(*so.Copied, so.All)
	}
	a.line = a.line[:0]
}
