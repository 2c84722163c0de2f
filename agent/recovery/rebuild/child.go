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
	"sync"
	"syscall"
	"time"

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
	// copyBound is how long a copy may take: 8 GB on a slow disk need some minutes.
	copyBound = time.Hour
	// readBound is how long reading the log may take, and fresh is how long its result is reused.
	readBound = 10 * time.Minute
	fresh     = 10 * time.Second
	// abandon is how long to wait for the output of a killed child.
	abandon = 500 * time.Millisecond
	// patience is how long a store may send nothing of a snapshot.
	patience = 2 * time.Minute
)

// Files are a member's files, accessed through child processes. Its methods may be called concurrently.
type Files struct {
	Command []string // runs this program, without the name of the hidden command
	Place   Place
	Etcd    string // path of the etcd that starts on the copy with --force-new-cluster
	// Fetch, followed by the name and the checksum of a snapshot, writes its database to standard output. It runs as
	// this process's user, who has the keys of the store. It is empty if there is no store.
	Fetch []string
	Ended func() // called when a copy ends; may be nil

	mu      sync.Mutex
	copy    recovery.Copy
	abandon context.CancelFunc // stops the copy that is being made
	reading *reading
}

// reading is a read of the log, running or ended.
type reading struct {
	done  chan struct{} // closed when it has ended
	log   recovery.Log
	err   error
	ended time.Time
}

// Read returns the content of the data directory. It takes as long as reading the log twice. If the context ends
// earlier, the error is [recovery.ErrReading]; another call waits for the same read.
func (f *Files) Read(ctx context.Context) (recovery.Log, error) {
	r := f.look()
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

// look returns the running read, or one that ended a moment ago, or starts one.
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
		r.err = f.run(ctx, &r.log, ReadCommand, nil)
		r.ended = time.Now()
	}()
	return r
}

// Copy starts a copy in the background, unless one is being made. See State.
func (f *Files) Copy(w recovery.Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Runs {
		return
	}
	f.copy = recovery.Copy{Plan: w.Plan, Runs: true}
	var ctx context.Context
	ctx, f.abandon = context.WithTimeout(context.Background(), copyBound)
	go f.work(ctx, w)
}

// Abandon stops a copy that is being made. Its files stay until a later copy starts over.
func (f *Files) Abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Runs {
		f.abandon()
	}
}

// work makes the copy. It outlives the step that started it, and has a bound of its own.
func (f *Files) work(ctx context.Context, w recovery.Work) {
	done := recovery.Copy{Plan: w.Plan}
	if err := f.rebuild(ctx, &done.Made, w); err != nil {
		done.Error = err.Error()
	} else {
		done.Whole = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandon() // its timer is not needed any longer
	f.copy = done
}

// rebuild makes the copy. A snapshot from a store goes through a pipe from the child that may read the store to the one
// that may write etcd's files.
func (f *Files) rebuild(ctx context.Context, made *recovery.Made, w recovery.Work) error {
	if w.Snapshot == nil || w.Snapshot.Name == "" {
		return f.runWork(ctx, made, RebuildCommand, w, nil, f.Etcd)
	}
	if len(f.Fetch) == 0 {
		return errors.New("the configuration of this host names no place for snapshots")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	args := append(append([]string{}, f.Fetch[1:]...), w.Snapshot.Name, w.Snapshot.SHA256)
	fetch := exec.CommandContext(ctx, f.Fetch[0], args...)
	fetch.WaitDelay = abandon
	var stderr bytes.Buffer
	fetch.Stderr = &stderr
	from, err := fetch.StdoutPipe()
	if err != nil {
		return err
	}
	if err := fetch.Start(); err != nil {
		return err
	}
	silent := time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("the store does not answer: nothing came for %s", durationfmt.Text(patience)))
	})
	err = f.runWork(ctx, made, RebuildCommand, w, flow{from, silent}, f.Etcd)
	silent.Stop()
	_ = from.Close() // not needed any longer
	fetched := fetch.Wait()
	switch {
	case err == nil:
		return nil // the rebuild has checked that the snapshot is whole, or it was copied before
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case fetched != nil && stderr.Len() > 0:
		return errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	}
	return err
}

// flow reads from a child and ends if the child sends nothing for too long.
type flow struct {
	from   io.Reader
	silent *time.Timer // ends the read
}

func (f flow) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil {
		f.silent.Stop() // all was read: the store cannot delay the rest
		return n, err
	}
	f.silent.Reset(patience)
	return n, nil
}

// State returns the progress of the copy, without waiting.
func (f *Files) State() recovery.Copy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.copy
}

// Swap moves the old data aside and puts the copy in their place. It returns the new names of the moved data.
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
	args := append(append([]string{}, f.Command[1:]...), verb, f.Place.DataDir, f.Place.WALDir)
	command := exec.CommandContext(ctx, f.Command[0], append(args, more...)...)
	command.WaitDelay, command.Stdin = abandon, in
	var stderr bytes.Buffer
	out := &answer{progress: f.copied}
	command.Stdout, command.Stderr = out, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the disk does not answer: %w", ctx.Err())
	case errors.As(err, &exit) && stderr.Len() > 0:
		return errors.New(string(bytes.TrimSpace(stderr.Bytes())))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // its input is not waited for
		return err
	}
	return json.Unmarshal(out.last, into)
}

// copied records the progress of the copy.
func (f *Files) copied(done, all int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy.Runs {
		f.copy.Done, f.copy.All = done, all
	}
}

// Main runs the child. Its arguments are the command, the data and the WAL directory, and what the command needs.
func Main(args []string, stdout io.Writer) error {
	debug.SetPanicOnFault(true) // for a file that is truncated while it is mapped
	if len(args) < 3 {
		return errors.New("a command and two directories are expected")
	}
	verb, p, rest := args[0], Place{DataDir: args[1], WALDir: args[2]}, args[3:]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var answer any
	// The etcd that runs on a copy is not limited by this. A log is read into memory as a whole.
	err := etcddb.Limits{Memory: etcddb.HalfOfMemory(), CPU: copyBound}.ConfineSelf()
	switch {
	case err != nil:
	case verb == ReadCommand && len(rest) == 0:
		answer, err = Read(p)
	case verb == RebuildCommand && len(rest) == 2:
		var w recovery.Work
		if w, err = workOf(rest[1]); err == nil {
			answer, err = rebuildTelling(ctx, p, w, rest[0], stdout)
		}
	case verb == SwapCommand && len(rest) == 1:
		var w recovery.Work
		if w, err = workOf(rest[0]); err == nil {
			answer, err = Swap(p, w, time.Now())
		}
	default:
		err = fmt.Errorf("unknown command %q", args)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(answer)
}

// rebuildTelling makes the copy and reports its progress meanwhile.
func rebuildTelling(ctx context.Context, p Place, w recovery.Work, etcd string, stdout io.Writer) (recovery.Made,
	error,
) {
	how := &Progress{}
	telling, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { how.tell(telling, stdout) })
	made, err := Rebuild(ctx, p, w, etcd, os.Stdin, how)
	stop()
	wait.Wait() // the answer must be the last line
	return made, err
}

func workOf(text string) (w recovery.Work, err error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return w, err
	}
	return w, w.Check()
}

// Allowed reports whether a child with these arguments uses only those directories and that program.
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
