//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// verify waits until the cluster has that many voters and learners and is at rest, and checks what must hold of every fleet,
// whatever was done to it: nothing is left over, no two operations overlapped, and no data was deleted.
func (f *fleet) verify(voters, learners int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d voters and %d learners stand, and nothing is in flight", voters, learners), func() bool {
		return f.has(voters, learners) && f.atRest()
	})
	f.checkRecords()
	f.checkHistory()
	f.checkData()
}

// checkRecords goes through all that ever happened to the lock and to the operation record, as etcd has it: the lock goes
// from holder to holder with a gap, each operation ends before the next begins, and who writes it holds the lock.
func (f *fleet) checkRecords() {
	f.t.Helper()
	events, err := f.events()
	f.check(err)
	var op *record.Op
	var holder int64 // create revision of the lock
	for _, e := range events {
		key, gone := string(e.Kv.Key), e.Type == clientv3.EventTypeDelete
		switch {
		case key == f.keys().Lock() && gone:
			holder = 0
		case key == f.keys().Lock():
			if holder != 0 && e.Kv.CreateRevision != holder {
				f.t.Errorf("revision %d: the lock was taken while it was held", e.Kv.ModRevision)
			}
			holder = e.Kv.CreateRevision
		case key == f.keys().Op() && gone:
			op = nil
		case key == f.keys().Op():
			next, err := record.Decode[record.Op](e.Kv.Value)
			if err != nil {
				f.t.Errorf("revision %d: %v", e.Kv.ModRevision, err)
				continue
			}
			if op != nil && (op.Host != next.Host || !op.Started.Equal(next.Started)) {
				f.t.Errorf("revision %d: the operation of %s replaces that of %s", e.Kv.ModRevision, next.HostName, op.HostName)
			}
			if next.Token != holder {
				f.t.Errorf("revision %d: the operation of %s was written under token %d, the lock was %d", e.Kv.ModRevision, next.HostName, next.Token, holder)
			}
			op = &next
		}
	}
}

// events gives every change of quorumd's own records since the cluster was made, in order.
func (f *fleet) events() ([]*clientv3.Event, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	const last = "/quorumd/lab-last"
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

// history gives all lines, oldest first.
func (f *fleet) history() ([]record.Line, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	answer, err := client.Get(ctx, f.keys().History(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var lines []record.Line
	for _, kv := range answer.Kvs {
		l, err := record.Decode[record.Line](kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// steps gives all that was done, as people are shown it, without what was refused.
func (f *fleet) steps() []string {
	f.t.Helper()
	lines, err := f.history()
	f.check(err)
	var steps []string
	for _, l := range lines {
		if l.Kind != "refusal" {
			steps = append(steps, l.Name+" "+l.Text)
		}
	}
	return steps
}

// checkHistory sees that what people are shown tells of one operation after the other.
func (f *fleet) checkHistory() {
	f.t.Helper()
	lines, err := f.history()
	f.check(err)
	began := ""
	for _, l := range lines {
		switch {
		case l.Kind == "step" && l.Code == string(policy.StepBeginJoin) && !failed(l):
			if began != "" {
				f.t.Errorf("history: %s began a join while that of %s went on", l.Name, began)
			}
			began = l.Name
		case l.Kind == "op" && strings.Contains(l.Text, " has ended: "):
			if began == "" && !f.killed {
				f.t.Errorf("history: %s ended an operation that has not begun: %s", l.Name, l.Text)
			}
			began = ""
		}
	}
	if began != "" {
		f.t.Errorf("history: the join of %s has not ended", began)
	}
}

// failed tells whether a line tells of a join that did not begin after all: its cause follows then.
func failed(l record.Line) bool {
	return !strings.HasSuffix(l.Text, "as "+string(policy.RoleVoter)) && !strings.HasSuffix(l.Text, "as "+string(policy.RoleStandby))
}

// noteData remembers every directory with data that there is.
func (f *fleet) noteData() {
	for id, path := range f.dataDirs() {
		if _, known := f.data[id]; !known {
			f.data[id] = path
		}
	}
}

// dataDirs gives the directories with data, by what stays the same when they are renamed. A host's disk that is not mounted at
// this moment has those that were seen on it.
func (f *fleet) dataDirs() map[string]string {
	found := map[string]string{}
	for _, h := range f.Hosts {
		base := filepath.Join(h.Disk.Path(), "etcd", "default")
		entries, err := os.ReadDir(base)
		if err != nil {
			continue // there is none yet
		}
		for _, e := range entries {
			if e.Name() != "member" && !strings.HasPrefix(e.Name(), "member.quorumd-") {
				continue
			}
			path := filepath.Join(base, e.Name())
			var s unix.Statx_t
			if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
				continue // renamed at this moment; it is seen at the next look
			}
			found[fmt.Sprintf("%s %d %d.%d", h.Name, s.Ino, s.Btime.Sec, s.Btime.Nsec)] = path
		}
	}
	return found
}

// checkData sees that every directory that was ever seen is still there.
func (f *fleet) checkData() {
	f.t.Helper()
	there := f.dataDirs()
	for id, path := range f.data {
		if _, still := there[id]; !still {
			f.t.Errorf("data was deleted: what was %s is gone", path)
		}
	}
}
