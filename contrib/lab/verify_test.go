//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// verify waits until the cluster has that many voters and learners and is idle. Then it checks what must hold in every
// fleet, whatever the test has done: nothing is left over, no two operations overlapped, and no data was deleted.
func (f *fleet) verify(voters, learners int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("there are %d voters and %d learners, and nothing is in flight", voters, learners),
		func() bool {
			return f.has(voters, learners) && f.isIdle()
		})
	f.checkRecords()
	f.checkHistory()
	f.checkData()
}

// checkRecords checks that no two operations overlapped, and that the lock never had two holders.
func (f *fleet) checkRecords() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client, err := f.client()
	f.check(err)
	events, err := testbed.Changes(ctx, client)
	f.check(err)
	f.checkNone(testbed.CheckChanges(events, f.keys()))
}

// checkNone fails the test with these errors, if any.
func (f *fleet) checkNone(wrong []error) {
	f.t.Helper()
	for _, err := range wrong {
		f.t.Error(err)
	}
}

// history returns all lines, oldest first.
func (f *fleet) history() ([]record.Line, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	return testbed.History(ctx, client, f.keys())
}

// steps returns all lines of the history except refused steps and steps of the given kinds.
func (f *fleet) steps(but ...policy.StepKind) []string {
	f.t.Helper()
	lines, err := f.history()
	f.check(err)
	var steps []string
	for _, l := range lines {
		if l.Kind != "refusal" && !slices.Contains(but, policy.StepKind(l.Code)) {
			steps = append(steps, l.Name+" "+l.Text)
		}
	}
	return steps
}

// mutatingSteps is like steps, without the steps that only take or release the lock. A host that releases the lock just
// when it is cut off records a failure: it held the lock, but did nothing under it.
func (f *fleet) mutatingSteps() []string {
	f.t.Helper()
	return f.steps(policy.StepTakeLock, policy.StepReleaseLock)
}

// checkHistory checks that the operations in the history do not overlap.
func (f *fleet) checkHistory() {
	f.t.Helper()
	lines, err := f.history()
	f.check(err)
	f.checkNone(testbed.CheckHistory(lines, f.killed))
}

// noteData records every directory that contains data.
func (f *fleet) noteData() { f.data.Note(f.dataDirs()) }

// dataDirs returns the directories with data on the mounted disks.
func (f *fleet) dataDirs() testbed.DataDirs {
	found := testbed.DataDirs{}
	for _, h := range f.Hosts {
		found.Note(testbed.FindDataDirs(h.Name, filepath.Join(h.Disk.Path(), "etcd", "default")))
	}
	return found
}

// checkData checks that every directory ever recorded still exists.
func (f *fleet) checkData() {
	f.t.Helper()
	f.checkNone(f.data.Missing(f.dataDirs()))
}
