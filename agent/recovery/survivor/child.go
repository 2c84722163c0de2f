// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
)

// Names of the hidden commands that run in the child.
const (
	ReadCommand    = "read-recovery-facts"
	RebuildCommand = "copy-survivor"
	SwapCommand    = "place-survivor"
)

const (
	// copyBound is how long a copy may take: a database of 8 GB and a slow disk need some minutes.
	copyBound = time.Hour
	// readBound is how long a look at the log may take, and fresh for how long its result is kept for who asks again.
	readBound = 10 * time.Minute
	fresh     = 10 * time.Second
	// abandon is how long the output of a child that was killed is waited for.
	abandon = 500 * time.Millisecond
)

// Files are a member's files, reached through child processes. Its methods may be called by several at once.
type Files struct {
	Command []string // runs this program, without the name of the hidden command
	Place   Place
	Etcd    string // the program that is forced on the copy
	Ended   func() // is told when a copy has come to its end; it may be nil

	mu      sync.Mutex
	copy    recovery.Copy
	reading *reading
}

// reading is a look at the log that is under way or has ended.
type reading struct {
	done  chan struct{} // closed when it has ended
	log   recovery.Log
	err   error
	ended time.Time
}

// Read tells what the data directory says of itself. That takes as long as reading the log twice: a caller whose time
// is over before gets [recovery.ErrReading], and asks again for the same look.
func (f *Files) Read(ctx context.Context) (recovery.Log, error) {
	r := f.look()
	select {
	case <-r.done:
	case <-ctx.Done():
		return recovery.Log{}, recovery.ErrReading
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading == r { // the next one wants to know how it is then
		f.reading = nil
	}
	return r.log, r.err
}

// look gives the look that is under way, or has ended a moment ago, or begins one.
func (f *Files) look() *reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.reading; r != nil {
		select {
		case <-r.done:
			if time.Since(r.ended) < fresh {
				return r
			}
		default:
			return r
		}
	}
	r := &reading{done: make(chan struct{})}
	f.reading = r
	go func() {
		defer close(r.done)
		ctx, cancel := context.WithTimeout(context.Background(), readBound)
		defer cancel()
		r.err = f.run(ctx, &r.log, ReadCommand)
		r.ended = time.Now()
	}()
	return r
}

// Copy begins to make the copy beside the caller, unless one is being made. See State.
func (f *Files) Copy(w recovery.Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Runs {
		return
	}
	f.copy = recovery.Copy{Plan: w.Plan, Runs: true}
	go f.work(w)
}

// work makes the copy. It outlives the step that has begun it, and ends with its own bound.
func (f *Files) work(w recovery.Work) {
	ctx, cancel := context.WithTimeout(context.Background(), copyBound)
	defer cancel()
	done := recovery.Copy{Plan: w.Plan}
	if err := f.runWork(ctx, &done.Made, RebuildCommand, w, f.Etcd); err != nil {
		done.Error = err.Error()
	} else {
		done.Whole = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.copy = done
}

// State tells how far the copy is. It waits for nothing.
func (f *Files) State() recovery.Copy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copy
}

// Swap moves the old data aside and puts the copy in their place. It gives the new names of what was moved.
func (f *Files) Swap(ctx context.Context, w recovery.Work) (moved []string, err error) {
	err = f.runWork(ctx, &moved, SwapCommand, w)
	return moved, err
}

func (f *Files) runWork(ctx context.Context, into any, verb string, w recovery.Work, more ...string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return f.run(ctx, into, verb, append(more, string(text))...)
}

func (f *Files) run(ctx context.Context, into any, verb string, more ...string) error {
	args := append(append([]string{}, f.Command[1:]...), verb, f.Place.DataDir, f.Place.WALDir)
	command := exec.CommandContext(ctx, f.Command[0], append(args, more...)...)
	command.WaitDelay = abandon
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the disk does not answer: %w", ctx.Err())
	case errors.As(err, &exit) && stderr.Len() > 0:
		return errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	case err != nil:
		return err
	}
	return json.Unmarshal(out, into)
}

// Main is what the child does. Its arguments are the command, the data and the WAL directory, and what the command
// needs.
func Main(args []string, stdout io.Writer) error {
	debug.SetPanicOnFault(true) // a file that is cut off under a mapping
	if len(args) < 3 {
		return errors.New("a command and two directories are expected")
	}
	verb, p, rest := args[0], Place{DataDir: args[1], WALDir: args[2]}, args[3:]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var answer any
	var err error
	switch {
	case verb == ReadCommand && len(rest) == 0:
		answer, err = Read(p)
	case verb == RebuildCommand && len(rest) == 2:
		var w recovery.Work
		if w, err = workOf(rest[1]); err == nil {
			answer, err = Rebuild(ctx, p, w, rest[0])
		}
	case verb == SwapCommand && len(rest) == 1:
		var w recovery.Work
		if w, err = workOf(rest[0]); err == nil {
			answer, err = Swap(p, w, time.Now())
		}
	default:
		err = fmt.Errorf("%q is no errand", args)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(answer)
}

func workOf(text string) (w recovery.Work, err error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return w, err
	}
	return w, w.Check()
}

// Allowed tells whether a child with these arguments keeps to those directories and that program.
func Allowed(args []string, p Place, etcd string) bool {
	if len(args) < 3 || args[1] != p.DataDir || args[2] != p.WALDir {
		return false
	}
	switch rest := args[3:]; args[0] {
	case ReadCommand:
		return len(rest) == 0
	case RebuildCommand:
		return len(rest) == 2 && rest[0] == etcd
	case SwapCommand:
		return len(rest) == 1
	}
	return false
}
