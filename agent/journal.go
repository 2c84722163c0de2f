// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
)

// journal is the history that people read: in etcd, for all hosts, and the last lines of this
// host in memory, for when etcd is down.
type journal struct {
	opt  Options
	keys record.Keys

	mu    sync.Mutex
	lines []control.HistoryLine // of this host, newest last
	n     int
}

const (
	keptHere   = 200
	keptInEtcd = 1000
	trimBatch  = 100
)

func newJournal(opt Options, keys record.Keys) *journal { return &journal{opt: opt, keys: keys} }

// line makes a line and the key under which it is to be stored.
func (j *journal) line(revision int64, kind, code, text string) (string, record.Line) {
	c := j.opt.Config
	l := record.Line{Time: j.opt.Wall(), Host: c.Host.ID, Name: c.Host.Name, Kind: kind, Code: code, Text: text}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	return j.keys.HistoryLine(revision, c.Host.ID, j.n), l
}

// keep puts a line into memory.
func (j *journal) keep(revision int64, l record.Line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, shown(revision, l))
	if len(j.lines) > 2*keptHere {
		j.lines = slices.Clone(j.lines[len(j.lines)-keptHere:])
	}
}

func shown(revision int64, l record.Line) control.HistoryLine {
	return control.HistoryLine{Revision: revision, Time: l.Time, Host: l.Host, HostName: l.Name, Kind: l.Kind, Code: l.Code, Text: l.Text}
}

// write stores a line. The history is for people: a line that cannot be stored is kept in memory
// only.
func (j *journal) write(ctx context.Context, revision int64, kind, code, text string) {
	if j.repeats(kind, code, text) {
		return
	}
	key, l := j.line(revision, kind, code, text)
	j.keep(revision, l)
	value, err := record.Encode(l)
	if err == nil {
		_, err = j.opt.Etcd.Txn(ctx, nil, clientv3.OpPut(key, string(value)))
	}
	if err != nil {
		j.opt.Logger.Debug("history line not stored", "code", code, "error", err)
	}
	if j.count()%trimBatch == 0 {
		j.trim(ctx)
	}
}

// repeats tells whether the last line of this host says the same.
func (j *journal) repeats(kind, code, text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		return false
	}
	last := j.lines[len(j.lines)-1]
	return last.Kind == kind && last.Code == code && last.Text == text
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.n
}

// trim deletes the oldest lines when there are too many. It is called at the end of an operation
// and by whoever has written many lines.
func (j *journal) trim(ctx context.Context) {
	oldest, err := j.opt.Etcd.ReadLast(ctx, j.keys.History(), keptInEtcd+trimBatch)
	if err != nil || len(oldest.Pairs) < keptInEtcd+trimBatch {
		return
	}
	end := oldest.Pairs[keptInEtcd-1].Key
	if _, err := j.opt.Etcd.Txn(ctx, nil, clientv3.OpDelete(j.keys.History(), clientv3.WithRange(end))); err != nil {
		j.opt.Logger.Debug("history not trimmed", "error", err)
	}
}

// read gives the newest lines, oldest first: those in etcd, or with the error those in memory.
func (j *journal) read(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	found, err := j.opt.Etcd.ReadLast(ctx, j.keys.History(), int64(limit))
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.lines) == 0 {
			return nil, errors.Join(errors.New("cannot read the history"), err)
		}
		return slices.Clone(j.lines[max(0, len(j.lines)-limit):]), nil
	}
	var lines []control.HistoryLine
	for _, pair := range slices.Backward(found.Pairs) {
		l, err := record.Decode[record.Line](pair.Value)
		if err != nil {
			continue // written by another version; the rest is still worth reading
		}
		lines = append(lines, shown(pair.CreateRevision, l))
	}
	return lines, nil
}
