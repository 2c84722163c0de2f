// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// Changes returns every change of quorumd's own records since the cluster was created, in order. To find the end, it
// writes a marker key.
func Changes(ctx context.Context, client *clientv3.Client) ([]*clientv3.Event, error) {
	put, err := client.Put(ctx, "/quorumd/trail-end", "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // cancel ends the watch
	defer cancel()
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
	return nil, errors.Join(errors.New("cannot read all changes: the watch has ended early"), ctx.Err())
}

// CheckChanges returns the violations in all changes of the lock and of the operation record. The lock must be free
// between two holders, each operation must end before the next begins, and only the holder of the lock may write the
// operation record.
func CheckChanges(events []*clientv3.Event, keys record.Keys) []error {
	var wrong []error
	var op *record.Op
	var holder int64 // create revision of the current holder's lock; 0 if the lock is free
	for _, e := range events {
		key, gone, at := string(e.Kv.Key), e.Type == clientv3.EventTypeDelete, e.Kv.ModRevision
		switch {
		case key == keys.Lock() && gone:
			holder = 0
		case key == keys.Lock():
			if holder != 0 && e.Kv.CreateRevision != holder {
				wrong = append(wrong, fmt.Errorf("revision %d: the lock was taken while it was held", at))
			}
			holder = e.Kv.CreateRevision
		case key == keys.Op() && gone:
			op = nil
		case key == keys.Op():
			next, err := record.Decode[record.Op](e.Kv.Value)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("revision %d: %w", at, err))
				continue
			}
			if op != nil && (op.Host != next.Host || !op.Started.Equal(next.Started)) {
				wrong = append(wrong, fmt.Errorf("revision %d: the operation of %s replaces that of %s", at,
					next.HostName, op.HostName))
			}
			if next.Token != holder {
				wrong = append(wrong,
					fmt.Errorf("revision %d: the operation of %s was written with token %d, but the lock was %d", at,
						next.HostName, next.Token, holder))
			}
			op = &next
		}
	}
	return wrong
}

// History returns all lines of the history, oldest first.
func History(ctx context.Context, client *clientv3.Client, keys record.Keys) ([]record.Line, error) {
	answer, err := client.Get(ctx, keys.History(), clientv3.WithPrefix())
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

// CheckHistory checks that the operations in the history do not overlap. A rollback step outside an operation counts as
// the beginning of one, in which a different host removes the learner. If an agent was killed, the beginning of its
// operation may not be recorded. The end is always recorded, in the transaction that ends the operation.
func CheckHistory(lines []record.Line, killed bool) []error {
	var wrong []error
	began := ""
	for _, l := range lines {
		begins := l.Kind == "step" && (strings.HasPrefix(l.Code, "begin-") ||
			began == "" && l.Code == string(policy.StepRollBack))
		switch {
		case begins && l.Outcome == record.StepError:
			killed = true // the operation may have begun without a record
		case begins:
			if began != "" {
				wrong = append(wrong, fmt.Errorf("history: %s began an operation during that of %s", l.Name,
					began))
			}
			began = l.Name
		case l.Kind == "operator" && l.Code == "RELEASED":
			began = ""
		case l.Kind == "operation":
			if began == "" && !killed {
				wrong = append(wrong, fmt.Errorf("history: %s ended an operation that has not begun: %s", l.Name,
					l.Text))
			}
			began = ""
		}
	}
	if began != "" {
		wrong = append(wrong, fmt.Errorf("history: the operation of %s has not ended", began))
	}
	return wrong
}

// CheckPlan returns an error if the changes of members in the history, oldest first, are not those of a plan, in its
// order. A repeated step counts once, and a failed one does not. In the history, a change belongs to the host whose
// agent made it, so CheckPlan does not suit a plan in which another host removes a member.
func CheckPlan(plan []policy.PlanStep, lines []record.Line) error {
	type change struct {
		change policy.PlanChange
		host   string
	}
	var planned, taken []change
	for _, s := range plan {
		if s.Change == policy.PlanLeaves && s.NewLeader != "" {
			planned = append(planned, change{policy.PlanTransfers, s.Host})
		}
		if s.Change != "" {
			planned = append(planned, change{s.Change, s.Host})
		}
	}
	kinds := map[string]policy.PlanChange{
		string(policy.StepPromote): policy.PlanJoins, string(policy.StepRemoveMember): policy.PlanLeaves,
		string(policy.StepTransferLeadership): policy.PlanTransfers, string(policy.StepTakeDown): policy.PlanRestarts,
		string(policy.StepUpdateMember): policy.PlanUpdates,
	}
	for _, l := range lines {
		kind, changes := kinds[l.Code]
		done := l.Kind == "step" && changes && l.Outcome != record.StepError
		if c := (change{kind, l.Name}); done && !slices.Contains(taken, c) {
			taken = append(taken, c)
		}
	}
	if !slices.Equal(planned, taken) {
		return fmt.Errorf("planned were %v, and the history has %v", planned, taken)
	}
	return nil
}

// DataDirs are directories with etcd data, identified by attributes that a rename does not change.
type DataDirs map[string]string

// FindDataDirs returns the data directories of a host: the one in use and those that were moved aside.
func FindDataDirs(host, dataDir string) DataDirs {
	found := DataDirs{}
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return found // the host has no data directory yet
	}
	for _, e := range entries {
		if e.Name() != "member" && !strings.HasPrefix(e.Name(), "member.quorumd-") {
			continue
		}
		path := filepath.Join(dataDir, e.Name())
		var s unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
			continue // the directory was just renamed; the next call finds it
		}
		found[fmt.Sprintf("%s %d %d.%d", host, s.Ino, s.Btime.Sec, s.Btime.Nsec)] = path
	}
	return found
}

// Note records new directories.
func (d DataDirs) Note(found DataDirs) {
	for id, path := range found {
		if _, known := d[id]; !known {
			d[id] = path
		}
	}
}

// Missing returns an error for each directory that no longer exists.
func (d DataDirs) Missing(there DataDirs) []error {
	var wrong []error
	for id, path := range d {
		if _, still := there[id]; !still {
			wrong = append(wrong, fmt.Errorf("data was deleted: %s is gone", path))
		}
	}
	return wrong
}
