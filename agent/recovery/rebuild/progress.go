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

// Progress counts the bytes of a copy while it is made. Of a nil one nothing is counted.
type Progress struct{ done, all atomic.Int64 }

func (p *Progress) did(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// remains notes that so many bytes are still to be copied, or read again.
func (p *Progress) remains(n int64) {
	if p != nil {
		p.all.Store(p.done.Load() + n)
	}
}

// sofar is one line by which a child tells how far it is. Its answer is the line after them, and has no such field.
type sofar struct {
	Copied *int64 `json:"copied,omitempty"`
	All    int64  `json:"all"`
}

// tellEvery is how often a child tells it.
const tellEvery = time.Second

// tell writes how far it is until the context ends.
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
				return // nobody listens any more
			}
		}
	}
}

// maxAnswer bounds a line of a child, in bytes.
const maxAnswer = 1 << 20

// answer takes what a child writes: lines that tell how far it is, which it passes on, and the one that is its answer.
type answer struct {
	told func(done, all int64) // nil for nobody
	line []byte                // that has no end yet
	last []byte                // the answer
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

// take takes a line that has ended.
func (a *answer) take() {
	var so sofar
	switch err := json.Unmarshal(a.line, &so); {
	case err != nil || so.Copied == nil:
		a.last = append([]byte(nil), a.line...)
	case a.told != nil:
		a.told(*so.Copied, so.All)
	}
	a.line = a.line[:0]
}
