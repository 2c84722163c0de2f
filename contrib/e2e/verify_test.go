// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
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

// verify waits until the cluster has that many voters and learners and is idle. Then it checks what must hold in every
// world, whatever the test has done: nothing is left over, no two operations overlapped, and no data was deleted.
func (w *world) verify(voters, learners int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("there are %d voters and %d learners", voters, learners), func() bool {
		return w.has(voters, learners)
	})
	w.eventually("no operation is left", func() bool { return w.absent(w.keys().Op()) })
	w.eventually("no lock is left", func() bool { return w.absent(w.keys().Lock()) })
	if !w.has(voters, learners) {
		w.t.Errorf("the membership changed while the last operation ended: %v", w.members())
	}
	w.checkRecords()
	w.checkHistory()
	w.checkData()
}

// checkRecords checks that no two operations overlapped, and that the lock never had two holders.
func (w *world) checkRecords() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := w.client(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := testbed.Changes(ctx, client)
	if err != nil {
		w.t.Fatalf("cannot read what happened: %v", err)
	}
	w.checkNone(testbed.CheckChanges(events, w.keys()))
}

// checkNone fails the test with these errors, if any.
func (w *world) checkNone(wrong []error) {
	w.t.Helper()
	for _, err := range wrong {
		w.t.Error(err)
	}
}

// client returns a client of a voter that answers.
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

// history returns all lines, oldest first.
func (w *world) history() ([]record.Line, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := w.client(ctx)
	if err != nil {
		return nil, err
	}
	return testbed.History(ctx, client, w.keys())
}

// checkHistory checks that the operations in the history do not overlap.
func (w *world) checkHistory() {
	w.t.Helper()
	lines, err := w.history()
	if err != nil {
		w.t.Fatalf("cannot read the history: %v", err)
	}
	w.checkNone(testbed.CheckHistory(lines, w.killed))
}

// noteData records every directory that contains data.
func (w *world) noteData() { w.data.Note(w.dataDirs()) }

func (w *world) dataDirs() testbed.DataDirs {
	found := testbed.DataDirs{}
	for _, h := range w.hosts {
		found.Note(h.dataDirs())
	}
	return found
}

func (h *host) dataDirs() testbed.DataDirs {
	return testbed.FindDataDirs(h.Options.Name, h.DataDir())
}

// checkData checks that every directory ever recorded still exists.
func (w *world) checkData() {
	w.t.Helper()
	w.checkNone(w.data.Missing(w.dataDirs()))
}
