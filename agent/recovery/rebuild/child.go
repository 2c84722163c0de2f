// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/recovery"
)

// Names of the hidden commands that run in the child.
const (
	ReadCommand    = "read-recovery-facts"
	RebuildCommand = "copy-survivor"
	SwapCommand    = "place-survivor"
)

const (
	// maxCopyTime is how long a copy may take. A copy of 8 GB on a slow disk takes some minutes.
	maxCopyTime = time.Hour
	// maxReadTime is how long reading the log may take. A result that no caller has received is kept for
	// resultLifetime.
	maxReadTime    = 10 * time.Minute
	resultLifetime = 10 * time.Second
	// maxLine limits a line of a child's output, in bytes, because the child runs as etcd's user and is not trusted.
	maxLine = 1 << 20
	// outputWait is how long to wait for the output of a killed fetch.
	outputWait = 500 * time.Millisecond
	// storeTimeout is how long a store may take to send more data.
	storeTimeout = 2 * time.Minute
)

// Files are a member's files, accessed through child processes. Its methods may be called concurrently.
type Files struct {
	Command []string // runs this program, without the name of the hidden command
	Place   Place
	Etcd    string // path of the etcd that starts on the copy with --force-new-cluster
	// Fetch, followed by the name and the checksum of a snapshot, writes its database to standard output. It runs as
	// the user of this process, which has the store's credentials. It is empty if there is no store.
	Fetch []string

	mu      sync.Mutex
	copy    recovery.Copy
	cancel  context.CancelFunc // stops the running copy
	reading *reading
}

// reading is a read of the log, running or ended.
type reading struct {
	done  chan struct{} // closed when the read has ended
	log   recovery.Log
	err   error
	ended time.Time
}

// Read returns the content of the data directory. It takes as long as reading the log twice. If the context ends
// earlier, the error is [recovery.ErrReading], and the next call waits for the same read.
func (f *Files) Read(ctx context.Context) (recovery.Log, error) {
	r := f.currentRead()
	select {
	case <-r.done:
	case <-ctx.Done():
		return recovery.Log{}, recovery.ErrReading
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading == r { // the next caller gets a new read
		f.reading = nil
	}
	return r.log, r.err
}

// currentRead returns the running read or one that has just ended. If there is neither, it starts a read.
func (f *Files) currentRead() *reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.reading; r != nil {
		select {
		case <-r.done:
			if time.Since(r.ended) < resultLifetime {
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
		ctx, cancel := context.WithTimeout(context.Background(), maxReadTime)
		defer cancel()
		r.err = f.run(ctx, &r.log, ReadCommand, nil)
		r.ended = time.Now()
	}()
	return r
}

// Copy starts a copy in the background, unless one is running. See State.
func (f *Files) Copy(w recovery.Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Running {
		return
	}
	f.copy = recovery.Copy{Plan: w.Plan, Running: true}
	var ctx context.Context
	ctx, f.cancel = context.WithTimeout(context.Background(), maxCopyTime)
	go f.runCopy(ctx, w)
}

// Abandon stops a running copy. Its files stay until a later copy starts over.
func (f *Files) Abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Running {
		f.cancel()
	}
}

// runCopy makes the copy. It may outlive the step that started it, so it has its own time limit.
func (f *Files) runCopy(ctx context.Context, w recovery.Work) {
	done := recovery.Copy{Plan: w.Plan}
	if err := f.rebuild(ctx, &done.Result, w); err != nil {
		done.Error = err.Error()
	} else {
		done.Complete = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel() // release the context's timer
	f.copy = done
}

// rebuild makes the copy. A snapshot from a store goes through a pipe from the child that may read the store to the
// child that may write etcd's files.
func (f *Files) rebuild(ctx context.Context, result *recovery.Result, w recovery.Work) error {
	if w.Snapshot == nil || w.Snapshot.Name == "" {
		return f.runWork(ctx, result, RebuildCommand, w, nil, f.Etcd)
	}
	if len(f.Fetch) == 0 {
		return errors.New("this host has no snapshot store configured")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	args := append(append([]string{}, f.Fetch[1:]...), w.Snapshot.Name, w.Snapshot.SHA256)
	fetch := exec.CommandContext(ctx, f.Fetch[0], args...)
	fetch.WaitDelay = outputWait
	var stderr bytes.Buffer
	fetch.Stderr = &stderr
	from, err := fetch.StdoutPipe()
	if err != nil {
		return err
	}
	if err := fetch.Start(); err != nil {
		return err
	}
	timeout := time.AfterFunc(storeTimeout, func() {
		cancel(fmt.Errorf("the store has sent no data for %s", durationfmt.Text(storeTimeout)))
	})
	err = f.runWork(ctx, result, RebuildCommand, w, idleReader{from, timeout}, f.Etcd)
	timeout.Stop()
	_ = from.Close() // a fetch that is still writing then ends
	fetched := fetch.Wait()
	switch {
	case err == nil:
		return nil // the rebuild has verified the snapshot, or an earlier attempt had already copied it
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case fetched != nil && stderr.Len() > 0:
		return errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	}
	return err
}

// idleReader reads from a child, and postpones the timeout with every read.
type idleReader struct {
	from    io.Reader
	timeout *time.Timer // ends the read when it fires
}

func (r idleReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil {
		r.timeout.Stop() // after the end of the data, nothing depends on the store
		return n, err
	}
	r.timeout.Reset(storeTimeout)
	return n, nil
}

// State returns the progress of the copy. It never waits.
func (f *Files) State() recovery.Copy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copy
}

// Swap moves the old data aside and puts the copy in its place. It returns the new names of the moved data.
func (f *Files) Swap(ctx context.Context, w recovery.Work) (moved []string, err error) {
	err = f.runWork(ctx, &moved, SwapCommand, w, nil)
	return moved, err
}

func (f *Files) runWork(ctx context.Context, into any, verb string, w recovery.Work, in io.Reader, more ...string,
) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return f.run(ctx, into, verb, in, append(more, string(text))...)
}

func (f *Files) run(ctx context.Context, into any, verb string, in io.Reader, more ...string) error {
	args := slices.Concat(f.Command[1:], []string{verb, f.Place.DataDir, f.Place.WALDir}, more)
	command := exec.CommandContext(ctx, f.Command[0], args...)
	command.Stdin = in
	var progress func(done, all int64)
	if verb == RebuildCommand {
		progress = f.recordProgress
	}
	err := child.Run(command, maxLine, progress, into)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("stopped before it had finished: %w", ctx.Err())
	}
	return err
}

// recordProgress records how much is copied.
func (f *Files) recordProgress(done, all int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Running {
		f.copy.Done, f.copy.All = done, all
	}
}

// Main runs the child. Its arguments are the command, the data and the WAL directory, and the command's own arguments.
func Main(args []string, stdout io.Writer) error {
	debug.SetPanicOnFault(true) // turns a fault into a panic if a mapped file is truncated
	if len(args) < 3 {
		return errors.New("a command and two directories are expected")
	}
	verb, p, rest := args[0], Place{DataDir: args[1], WALDir: args[2]}, args[3:]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The limits do not apply to the etcd that runs on a copy. The memory limit must allow for a whole log.
	limits := etcddb.Limits{Memory: etcddb.HalfOfMemory(), CPU: maxCopyTime}
	if err := limits.ConfineSelf(); err != nil {
		return err
	}
	return child.Main(ctx, stdout, func(ctx context.Context, progress *child.Progress) (any, error) {
		switch {
		case verb == ReadCommand && len(rest) == 0:
			return Read(p)
		case verb == RebuildCommand && len(rest) == 2:
			w, err := parseWork(rest[1])
			if err != nil {
				return nil, err
			}
			return Rebuild(ctx, p, w, rest[0], os.Stdin, progress)
		case verb == SwapCommand && len(rest) == 1:
			w, err := parseWork(rest[0])
			if err != nil {
				return nil, err
			}
			return Swap(p, w, time.Now())
		}
		return nil, fmt.Errorf("unknown command %q", args)
	})
}

func parseWork(text string) (w recovery.Work, err error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return w, err
	}
	return w, w.Check()
}

// Allowed reports whether a child with these arguments uses only the given directories and the given etcd binary.
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
