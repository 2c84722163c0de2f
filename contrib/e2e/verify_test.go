// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// members reads the member list from this host's etcd, linearizably.
func (h *host) members() ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := h.etcd.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Members, nil
}

// verify waits until the cluster has that many voters and learners and is at rest, and checks what must hold of every world,
// whatever was done to it: nothing is left over, no two operations overlapped, and no data was deleted.
func (w *world) verify(voters, learners int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d voters and %d learners stand", voters, learners), func() bool { return w.has(voters, learners) })
	w.eventually("no operation is left", func() bool { return w.absent(w.keys().Op()) })
	w.eventually("no lock is left", func() bool { return w.absent(w.keys().Lock()) })
	if !w.has(voters, learners) {
		w.t.Errorf("the membership has changed while the last operation ended: %v", w.members())
	}
	w.checkRecords()
	w.checkHistory()
	w.checkData()
}

// checkRecords goes through all that ever happened to the lock and to the operation record, as etcd has it: the lock goes
// from holder to holder with a gap, each operation ends before the next begins, and who writes it holds the lock.
func (w *world) checkRecords() {
	w.t.Helper()
	events, err := w.events()
	if err != nil {
		w.t.Fatalf("cannot read what happened: %v", err)
	}
	var op *record.Op
	var holder int64 // create revision of the lock
	for _, e := range events {
		key, gone := string(e.Kv.Key), e.Type == clientv3.EventTypeDelete
		switch {
		case key == w.keys().Lock() && gone:
			holder = 0
		case key == w.keys().Lock():
			if holder != 0 && e.Kv.CreateRevision != holder {
				w.t.Errorf("revision %d: the lock was taken while it was held", e.Kv.ModRevision)
			}
			holder = e.Kv.CreateRevision
		case key == w.keys().Op() && gone:
			op = nil
		case key == w.keys().Op():
			next, err := record.Decode[record.Op](e.Kv.Value)
			if err != nil {
				w.t.Errorf("revision %d: %v", e.Kv.ModRevision, err)
				continue
			}
			if op != nil && (op.Host != next.Host || !op.Started.Equal(next.Started)) {
				w.t.Errorf("revision %d: the operation of %s replaces that of %s", e.Kv.ModRevision, next.HostName, op.HostName)
			}
			if next.Token != holder {
				w.t.Errorf("revision %d: the operation of %s was written under token %d, the lock was %d", e.Kv.ModRevision, next.HostName, next.Token, holder)
			}
			op = &next
		}
	}
}

// events gives every change of quorumd's own records since the cluster was made, in order.
func (w *world) events() ([]*clientv3.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := w.client(ctx)
	if err != nil {
		return nil, err
	}
	const last = "/quorumd/e2e-last"
	put, err := client.Put(ctx, last, "")
	if err != nil {
		return nil, err
	}
	var events []*clientv3.Event
	for answer := range client.Watch(ctx, "/quorumd/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := answer.Err(); err != nil {
			return nil, err
		}
		for _, e := range answer.Events {
			if e.Kv.ModRevision == put.Header.Revision {
				return events, nil
			}
			events = append(events, e)
		}
	}
	return nil, errors.Join(errors.New("the watch has ended early"), ctx.Err())
}

// client gives a client of a voter that answers.
func (w *world) client(ctx context.Context) (*clientv3.Client, error) {
	var errs []error
	for _, h := range w.hosts {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := h.etcd.Get(ctx, "/quorumd/")
		cancel()
		if err == nil {
			return h.etcd, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no voter answers: %w", errors.Join(errs...))
}

// history gives all lines, oldest first.
func (w *world) history() ([]record.Line, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := w.client(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := client.Get(ctx, w.keys().History(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var lines []record.Line
	for _, kv := range answer.Kvs {
		l, err := lineOf(kv)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func lineOf(kv *mvccpb.KeyValue) (record.Line, error) {
	l, err := record.Decode[record.Line](kv.Value)
	if err != nil {
		return l, fmt.Errorf("%s: %w", kv.Key, err)
	}
	return l, nil
}

// checkHistory sees that what people are shown tells of one operation after the other. An agent that is killed may not
// come to write that it has begun; the end is written with the deed.
func (w *world) checkHistory() {
	w.t.Helper()
	lines, err := w.history()
	if err != nil {
		w.t.Fatalf("cannot read the history: %v", err)
	}
	began := ""
	for _, l := range lines {
		switch {
		case l.Kind == "step" && l.Code == string(policy.StepBeginJoin) && !failed(l):
			if began != "" {
				w.t.Errorf("history: %s began a join while that of %s went on", l.Name, began)
			}
			began = l.Name
		case l.Kind == "op" && strings.Contains(l.Text, " has ended: "):
			if began == "" && !w.killed {
				w.t.Errorf("history: %s ended an operation that has not begun: %s", l.Name, l.Text)
			}
			began = ""
		}
	}
	if began != "" {
		w.t.Errorf("history: the join of %s has not ended", began)
	}
}

// failed tells whether a line tells of a join that did not begin after all: its cause follows then.
func failed(l record.Line) bool {
	return !strings.HasSuffix(l.Text, "as "+string(policy.RoleVoter)) && !strings.HasSuffix(l.Text, "as "+string(policy.RoleStandby))
}

// noteData remembers every directory with data that there is.
func (w *world) noteData() {
	for _, h := range w.hosts {
		for id, path := range h.dataDirs() {
			if _, known := w.data[id]; !known {
				w.data[id] = path
			}
		}
	}
}

// dataDirs gives the directories with data, by what stays the same when they are renamed.
func (h *host) dataDirs() map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(h.DataDir())
	if err != nil {
		return found // there is none yet
	}
	for _, e := range entries {
		if e.Name() != "member" && !strings.HasPrefix(e.Name(), "member.quorumd-") {
			continue
		}
		path := filepath.Join(h.DataDir(), e.Name())
		var s unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
			continue // renamed at this moment; it is seen at the next look
		}
		found[fmt.Sprintf("%s %d %d.%d", h.Options.Name, s.Ino, s.Btime.Sec, s.Btime.Nsec)] = path
	}
	return found
}

// checkData sees that every directory that was ever seen is still there.
func (w *world) checkData() {
	w.t.Helper()
	w.noteData()
	there := map[string]string{}
	for _, h := range w.hosts {
		for id, path := range h.dataDirs() {
			there[id] = path
		}
	}
	for id, path := range w.data {
		if _, still := there[id]; !still {
			w.t.Errorf("data was deleted: what was %s is gone", path)
		}
	}
}
