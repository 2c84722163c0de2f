// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// expectWrong checks that there is one error for each text, and that each error contains its text.
func expectWrong(t *testing.T, got []error, want ...string) {
	t.Helper()
	text := errors.Join(got...)
	if len(got) != len(want) {
		t.Fatalf("found %d violations, want %d: %v", len(got), len(want), text)
	}
	for i, w := range want {
		if !strings.Contains(got[i].Error(), w) {
			t.Errorf("found %q, want %q", got[i], w)
		}
	}
}

func TestTwoOperationsOrTwoHoldersAtOnceAreFound(t *testing.T) {
	t.Parallel()
	keys := record.KeysFor("trail")
	revision := int64(0)
	event := func(kind mvccpb.Event_EventType, key string, created int64, value string) *clientv3.Event {
		revision++
		return &clientv3.Event{Type: kind, Kv: &mvccpb.KeyValue{
			Key: []byte(key), Value: []byte(value),
			CreateRevision: created, ModRevision: revision,
		}}
	}
	taken := func(created int64) *clientv3.Event { return event(clientv3.EventTypePut, keys.Lock(), created, "") }
	free := func() *clientv3.Event { return event(clientv3.EventTypeDelete, keys.Lock(), 0, "") }
	ended := func() *clientv3.Event { return event(clientv3.EventTypeDelete, keys.Op(), 0, "") }
	op := func(host string, token int64) *clientv3.Event {
		value, err := record.Encode(record.Op{
			Kind: "join", Host: host, HostName: host, Token: token,
			Started: time.Unix(1, 0),
		})
		if err != nil {
			t.Fatal(err)
		}
		return event(clientv3.EventTypePut, keys.Op(), 1, string(value))
	}
	fine := []*clientv3.Event{
		taken(1), op("a", 1), op("a", 1), ended(), free(), taken(6), op("b", 6), free(), taken(9),
		op("b", 9), ended(), free(),
	}
	expectWrong(t, CheckChanges(fine, keys))
	expectWrong(t, CheckChanges([]*clientv3.Event{taken(1), taken(2)}, keys), "taken while it was held")
	expectWrong(t, CheckChanges([]*clientv3.Event{taken(1), op("a", 1), op("b", 1)}, keys),
		"the operation of b replaces that of a")
	expectWrong(t, CheckChanges([]*clientv3.Event{taken(1), free(), op("a", 1)}, keys),
		"with token 1, but the lock was 0")
	expectWrong(t, CheckChanges([]*clientv3.Event{event(clientv3.EventTypePut, keys.Op(), 1, "{")}, keys), "revision")
}

func TestAHistoryOfJoinsThatOverlapIsFound(t *testing.T) {
	t.Parallel()
	begin := func(name string) record.Line {
		return record.Line{
			Name: name, Kind: "step", Code: string(policy.StepBeginJoin),
			Text: "recording the join as voter",
		}
	}
	end := func(name string) record.Line {
		return record.Line{
			Name: name, Kind: "operation", Code: "JOINED", Operation: policy.KindJoin, Outcome: "JOINED",
			Text: "join of " + name + " as voter has ended: the host has joined",
		}
	}
	refused := begin("a")
	refused.Text, refused.Outcome = record.FailedStep+refused.Text+": cannot begin", record.StepError
	expectWrong(t, CheckHistory([]record.Line{refused, begin("a"), end("a"), begin("b"), end("b")}, false))
	expectWrong(t, CheckHistory([]record.Line{begin("a"), begin("b"), end("b")}, false),
		"b began an operation during that of a")
	expectWrong(t, CheckHistory([]record.Line{end("a")}, false), "a ended an operation that has not begun")
	expectWrong(t, CheckHistory([]record.Line{end("a")}, true))
	expectWrong(t, CheckHistory([]record.Line{begin("a")}, true), "the operation of a has not ended")
	undone := record.Line{
		Name: "a", Kind: "step", Code: string(policy.StepRollBack),
		Text: "recording the rollback: it has been SLOW for 5m",
	}
	expectWrong(t, CheckHistory([]record.Line{undone, end("the standby b"), begin("c"), undone, end("c")}, false))
	expectWrong(t, CheckHistory([]record.Line{undone, begin("c"), end("c")}, false),
		"c began an operation during that of a")
	down := record.Line{
		Name: "a", Kind: "step", Code: string(policy.StepBeginCycle),
		Text: "recording that this host is taken down: restart: new version",
	}
	back := record.Line{
		Name: "a", Kind: "operation", Code: "CYCLED", Operation: policy.KindCycle, Outcome: "CYCLED",
		Text: "cycle of a for restart has ended: the host was taken down and is back",
	}
	expectWrong(t, CheckHistory([]record.Line{down, back, begin("b"), end("b")}, false))
	expectWrong(t, CheckHistory([]record.Line{down, begin("b"), end("b")}, false),
		"b began an operation during that of a")
	released := record.Line{
		Name: "b", Kind: "operator", Code: "RELEASED",
		Text: "cycle of a in phase ready released by root: it is gone",
	}
	expectWrong(t, CheckHistory([]record.Line{down, released, begin("b"), end("b")}, false))
	late := down
	late.Text, late.Outcome = record.FailedStep+late.Text+": the lock is lost", record.StepError
	expectWrong(t, CheckHistory([]record.Line{late, down, back}, false))
}

func TestARenamedDataDirectoryIsRecognisedAndADeletedOneIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"member", "member.quorumd-1", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	seen := DataDirs{}
	seen.Note(FindDataDirs("n1", dir))
	if len(seen) != 2 {
		t.Fatalf("found %v", seen)
	}
	if err := os.Rename(filepath.Join(dir, "member"), filepath.Join(dir, "member.quorumd-2")); err != nil {
		t.Fatal(err)
	}
	expectWrong(t, seen.Missing(FindDataDirs("n1", dir)))
	if err := os.Remove(filepath.Join(dir, "member.quorumd-1")); err != nil {
		t.Fatal(err)
	}
	expectWrong(t, seen.Missing(FindDataDirs("n1", dir)), "member.quorumd-1 is gone")
	expectWrong(t, seen.Missing(FindDataDirs("n2", dir)), "is gone", "is gone")
}
