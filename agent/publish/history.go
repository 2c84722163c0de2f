// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// Journal is the history shown to operators. etcd stores it for all hosts; this host's last lines are also in memory,
// for when etcd is down.
type Journal struct {
	opt  Options
	keys record.Keys

	mu      sync.Mutex
	lines   []control.HistoryLine // lines of this host, newest last
	n       int
	pending []pendingLine // lines not known to be stored, oldest first

	reading chan struct{} // holds one value while the history is read from etcd
	cached  lastRead
}

// lastRead is the last result of reading the history from etcd. Concurrent readers share one read.
type lastRead struct {
	at    time.Duration
	limit int
	n     int // how many lines this host had written at the time of the read
	lines []control.HistoryLine
}

// readEvery is how long a result is reused, unless this host writes a line in the meantime.
const readEvery = time.Second

// pendingLine is a line still to be stored in etcd. Its key is chosen once, at the latest by the first attempt to store
// it, so that a line is not stored twice if an attempt was not answered.
type pendingLine struct {
	key   string
	value string
}

const (
	keptHere    = 200
	keptInEtcd  = 1000
	keptPending = 50 // etcd accepts 128 in a transaction
	trimBatch   = 100
)

// NewJournal returns an empty Journal.
func NewJournal(opt Options, keys record.Keys) *Journal {
	return &Journal{opt: opt, keys: keys, reading: make(chan struct{}, 1)}
}

// Entry is the content of a line without its time and host.
type Entry struct {
	Kind, Code, Text   string
	Operation, Outcome string // see record.Line
}

// Line completes a line and returns it with the key to store it under. The caller stores the line and then calls
// Completed.
func (j *Journal) Line(revision int64, l record.Line) (string, record.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.nextKey(revision), j.newLine(Entry{
		Kind: l.Kind, Code: l.Code, Text: l.Text, Operation: l.Operation, Outcome: l.Outcome,
	})
}

func (j *Journal) newLine(e Entry) record.Line {
	h := j.opt.Config.Host
	return record.Line{
		Time: j.opt.Wall(), Host: h.ID, Name: h.Name, Kind: e.Kind, Code: e.Code, Text: e.Text,
		Operation: e.Operation, Outcome: e.Outcome,
	}
}

func (j *Journal) nextKey(revision int64) string {
	j.n++
	return j.keys.HistoryLine(revision, j.opt.Config.Host.ID, j.n)
}

// keep adds a line to memory.
func (j *Journal) keep(revision int64, l record.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, shown(revision, l))
	if len(j.lines) > 2*keptHere {
		j.lines = slices.Clone(j.lines[len(j.lines)-keptHere:])
	}
}

func shown(revision int64, l record.Line) control.HistoryLine {
	return control.HistoryLine{
		Revision: revision, Time: l.Time, Host: l.Host, HostName: l.Name, Kind: l.Kind,
		Code: l.Code, Text: l.Text, Operation: l.Operation, Outcome: l.Outcome,
	}
}

// Write stores a line, and the lines that could not be stored earlier. If the line repeats this host's last one, it
// stores nothing.
func (j *Journal) Write(ctx context.Context, revision int64, e Entry) {
	if !j.Note(revision, e) {
		return
	}
	j.Store(ctx, revision)
	if j.count()%trimBatch == 0 {
		j.Trim(ctx)
	}
}

// Note queues a line for Store. A caller uses it instead of Write if a step may just have stopped the member that would
// receive the line, or if no voter answers. revision is 0 if unknown. Note reports whether the line was queued: a line
// that repeats this host's last line is not.
func (j *Journal) Note(revision int64, e Entry) bool {
	if j.repeats(e) {
		return false
	}
	l := j.newLine(e)
	j.keep(revision, l)
	value, err := record.Encode(l)
	if err != nil { // the other lines are still stored
		j.opt.Logger.Error("cannot store a history entry", "kind", e.Kind, "code", e.Code, "error", err)
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	p := pendingLine{value: string(value)}
	if revision != 0 {
		p.key = j.nextKey(revision)
	}
	j.pending = append(j.pending, p)
	j.pending = slices.Clone(j.pending[max(0, len(j.pending)-keptPending):])
	return true
}

// Waiting reports whether lines are queued.
func (j *Journal) Waiting() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pending) > 0
}

// Store stores the queued lines in one transaction. After a failure the next call retries.
func (j *Journal) Store(ctx context.Context, revision int64) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.Config.Timing.CallTimeout)
	defer cancel()
	j.mu.Lock()
	var puts []clientv3.Op
	tried := map[string]bool{}
	for i := range j.pending {
		p := &j.pending[i]
		if p.key == "" {
			p.key = j.nextKey(revision)
		}
		puts = append(puts, clientv3.OpPut(p.key, p.value))
		tried[p.key] = true
	}
	j.mu.Unlock()
	if _, err := j.opt.Etcd.Txn(ctx, nil, puts...); err != nil {
		j.opt.Logger.Debug("cannot store the history; retrying", "lines", len(tried), "error", err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = slices.DeleteFunc(j.pending, func(p pendingLine) bool { return tried[p.key] })
}

// repeats reports whether this host's last line has the same content.
func (j *Journal) repeats(e Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		return false
	}
	last := j.lines[len(j.lines)-1]
	return last.Kind == e.Kind && last.Code == e.Code && last.Text == e.Text
}

func (j *Journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.n
}

// trimEvery is the interval at which the host that maintains the join queue trims the history.
const trimEvery = 10 * time.Minute

// Trim deletes the oldest lines if there are too many. It is called at the end of an operation, after many new lines,
// and periodically on the host that maintains the join queue.
func (j *Journal) Trim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.Config.Timing.CallTimeout) // limited, because the loop waits for it
	defer cancel()
	oldest, err := j.opt.Etcd.ReadLast(ctx, j.keys.History(), keptInEtcd+trimBatch)
	if err != nil || len(oldest.Pairs) < keptInEtcd+trimBatch {
		return
	}
	end := oldest.Pairs[keptInEtcd-1].Key
	if _, err := j.opt.Etcd.Txn(ctx, nil, clientv3.OpDelete(j.keys.History(), clientv3.WithRange(end))); err != nil {
		j.opt.Logger.Debug("cannot trim the history", "error", err)
	}
}

// Read returns the newest lines in etcd, oldest first. It may reuse the last result (see readEvery). If etcd does not
// answer, it returns the lines written by this process, with control.ErrNotNewest, or an error if there are none.
func (j *Journal) Read(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	select {
	case j.reading <- struct{}{}:
		defer func() { <-j.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now, n := j.opt.Now(), j.count()
	if l := j.cached; l.limit >= limit && l.n == n && now-l.at < readEvery {
		return l.lines[max(0, len(l.lines)-limit):], nil
	}
	found, err := j.opt.Etcd.ReadLast(ctx, j.keys.History(), int64(limit))
	if cluster.Denied(err) { // etcd answers and denies the read: report that
		return nil, err
	}
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.lines) == 0 {
			return nil, errors.Join(errors.New("cannot read the history"), err)
		}
		return slices.Clone(j.lines[max(0, len(j.lines)-limit):]), control.ErrNotNewest
	}
	var lines []control.HistoryLine
	for _, pair := range slices.Backward(found.Pairs) {
		l, err := record.Decode[record.Line](pair.Value)
		if err != nil {
			j.opt.Logger.Debug("cannot read a history entry", "key", pair.Key, "bytes",
				max(len(pair.Value), pair.Oversized), "error", err)
			continue // written by another version; the rest is still worth reading
		}
		lines = append(lines, shown(pair.CreateRevision, l))
	}
	j.cached = lastRead{at: now, limit: limit, n: n, lines: lines}
	return lines, nil
}
