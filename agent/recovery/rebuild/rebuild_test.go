// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// crashed runs three members, writes to them, kills all three at the same time and returns the acknowledged writes.
func crashed(t *testing.T, o testbed.ClusterOptions) (*testbed.Cluster, testbed.LoadReport) {
	t.Helper()
	c := testbed.StartCluster(t, 3, o)
	load, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{Endpoints: c.Endpoints(), Rate: 300})
	if err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, time.Minute, "200 writes are acknowledged", func() bool { return load.Report().Acked > 200 })
	for _, m := range c.Members {
		if err := m.Kill9(); err != nil {
			t.Fatal(err)
		}
	}
	report := load.Stop()
	for _, m := range c.Members {
		_ = m.Wait(t.Context()) // the member was killed
	}
	return c, report
}

func placeOf(m *testbed.Member) Place { return Place{DataDir: filepath.Join(m.Options.Dir, "data")} }

// best returns the member with the most advanced log, and the work to make a cluster from it.
func best(t *testing.T, c *testbed.Cluster) (*testbed.Member, recovery.Work) {
	t.Helper()
	var chosen *testbed.Member
	var at recovery.Log
	for _, m := range c.Members {
		l, err := Read(placeOf(m))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Members) != 3 || l.Revision == 0 {
			t.Errorf("the database of %s has %d members and revision %d", m.Options.Name, len(l.Members),
				l.Revision)
		}
		if chosen == nil || l.Term > at.Term || l.Term == at.Term && l.Index > at.Index {
			chosen, at = m, l
		}
	}
	return chosen, recovery.Work{
		Plan: "abcdefghijkl", Cluster: 0xfeedfacecafe, Old: at.Cluster, Member: at.Member, Term: at.Term,
		Index: at.Index, Name: chosen.Options.Name, ClientURL: chosen.Options.ClientURL,
		PeerURL: chosen.Options.PeerURL,
	}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// versions returns the etcd versions to test: the one that every test uses or, in make test-matrix, those that it
// names.
func versions() []string {
	if named := strings.Fields(os.Getenv("QUORUMD_ETCD_VERSIONS")); len(named) > 0 {
		return named
	}
	return []string{testbed.Small}
}

func TestSurvivorRunsAloneWithEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c, report := crashed(t, testbed.ClusterOptions{Version: version, Extra: []string{"--snapshot-count=100"}})
			m, work := best(t, c)
			p := placeOf(m)
			progress := &child.Progress{}
			result, err := Rebuild(bounded(t), p, work, m.Options.Binary, nil, progress)
			if err != nil {
				t.Fatal(err)
			}
			if done, all := progress.Now(); done != all || done < 20<<10 {
				t.Errorf("the progress ends at %d of %d bytes", done, all)
			}
			again, err := Rebuild(bounded(t), p, work, "/bin/false", nil, nil)
			if err != nil || again != result {
				t.Errorf("the second call returns %+v, %v; the first %+v", again, err, result)
			}
			for range 2 { // repeating the swap changes nothing
				if _, err := swap(p, work); err != nil {
					t.Fatal(err)
				}
			}
			alone(t, m, work, result, report)
		})
	}
}

// alone starts the member and checks that it is the only member of its cluster, with all acknowledged writes.
func alone(t *testing.T, m *testbed.Member, work recovery.Work, result recovery.Result, report testbed.LoadReport) {
	t.Helper()
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitReady(bounded(t)); err != nil {
		t.Fatal(err)
	}
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.MemberList(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Members) != 1 || list.Header.ClusterId != uint64(work.Cluster) ||
		list.Members[0].ID != uint64(work.Member) {
		t.Errorf("the members are %v of cluster %x", list.Members, list.Header.ClusterId)
	}
	var last int64
	for _, w := range report.Writes {
		if w.Acked.IsZero() {
			continue
		}
		last = max(last, w.Revision)
		answer, err := client.Get(bounded(t), w.Key)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Kvs) != 1 {
			t.Errorf("%s was acknowledged at revision %d and is lost", w.Key, w.Revision)
		}
	}
	put, err := client.Put(bounded(t), "after", "x")
	if err != nil {
		t.Fatal(err)
	}
	if put.Header.Revision <= result.After || result.Before < last || result.After-result.Before != bump {
		t.Errorf("the next revision is %d, the result is %+v, the last acknowledged revision is %d",
			put.Header.Revision, result, last)
	}
	answer := <-client.Watch(bounded(t), "load/", clientv3.WithPrefix(), clientv3.WithRev(last))
	if !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watcher that resumes gets %v", answer.Err())
	}
	saved(t, client)
}

// saved checks that a snapshot of the recovered member can be saved, and has the member's content.
func saved(t *testing.T, client *clientv3.Client) {
	t.Helper()
	raw, err := client.Snapshot(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	store, err := backup.OpenDirectory(t.TempDir(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	m, err := backup.Save(bounded(t), store, backup.Stream{Reader: raw, Cluster: "demo", Host: "n1"},
		backup.Options{Spool: t.TempDir(), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := client.HashKV(bounded(t), client.Endpoints()[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	count, err := client.Get(bounded(t), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	want := record.Contents{
		Revision: hash.Header.Revision, CompactRevision: hash.CompactRevision, Hash: hash.Hash, Keys: count.Count,
	}
	if m.Contents != want {
		t.Errorf("the snapshot contains %+v, etcd %+v", m.Contents, want)
	}
}

// raise raises the NOSPACE and CORRUPT alarms, as a member does.
func raise(t *testing.T, client *clientv3.Client, member uint64) {
	t.Helper()
	for _, alarm := range []etcdserverpb.AlarmType{etcdserverpb.AlarmType_NOSPACE, etcdserverpb.AlarmType_CORRUPT} {
		_, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(bounded(t),
			&etcdserverpb.AlarmRequest{
				Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: member, Alarm: alarm,
			})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// recordedEtcd returns a program that runs etcd and records its arguments and GOMAXPROCS.
func recordedEtcd(t *testing.T, etcd string) (program, note string) {
	t.Helper()
	dir := t.TempDir()
	program, note = filepath.Join(dir, "etcd"), filepath.Join(dir, "note")
	script := fmt.Sprintf("#!/bin/sh\necho $GOMAXPROCS \"$@\" > %s\nexec %s \"$@\"\n", note, etcd)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return program, note
}

func TestSurvivorOfAClusterWithAlarmsRunsAlone(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := testbed.StartCluster(t, 3, testbed.ClusterOptions{Version: version})
			client := c.Client(t)
			if _, err := client.Put(bounded(t), "before", "x"); err != nil {
				t.Fatal(err)
			}
			list, err := client.MemberList(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			raise(t, client, list.Members[0].ID)
			for _, m := range c.Members {
				if err := m.Terminate(); err != nil { // a clean shutdown writes the database to the disk
					t.Fatal(err)
				}
				_ = m.Wait(t.Context()) // the member was terminated
			}
			m, work := best(t, c)
			program, note := recordedEtcd(t, m.Options.Binary)
			if _, err := Rebuild(bounded(t), placeOf(m), work, program, nil, nil); err != nil {
				t.Fatal(err)
			}
			recorded, err := os.ReadFile(note)
			if err != nil || !strings.HasPrefix(string(recorded), "4 ") ||
				!strings.Contains(string(recorded), "--quota-backend-bytes=-1") {
				t.Errorf("etcd was run with %s: %v", recorded, err)
			}
			if _, err := swap(placeOf(m), work); err != nil {
				t.Fatal(err)
			}
			clearsAlarms(t, m)
		})
	}
}

// swap puts a copy in place. A child that a concurrent test has just forked may still hold a lock that this process has
// released, until the child executes its program. Outside of tests, the swap runs in its own process.
func swap(p Place, w recovery.Work) (moved []string, err error) {
	for range 20 {
		if moved, err = Swap(p, w, time.Now()); err == nil || !strings.Contains(err.Error(), "a running etcd uses it") {
			return moved, err
		}
		<-time.After(50 * time.Millisecond)
	}
	return moved, err
}

// clearsAlarms checks that the recovered cluster has the alarms, and accepts writes once they are cleared.
func clearsAlarms(t *testing.T, m *testbed.Member) {
	t.Helper()
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	alarms, err := client.AlarmList(bounded(t))
	if err != nil || len(alarms.Alarms) != 2 {
		t.Fatalf("the alarms are %v: %v", alarms, err)
	}
	if _, err := client.Put(bounded(t), "full", "x"); err == nil {
		t.Error("writes succeed in spite of an alarm")
	}
	for _, alarm := range alarms.Alarms {
		if _, err := client.AlarmDisarm(bounded(t), (*clientv3.AlarmMember)(alarm)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(bounded(t), "after", "x"); err != nil {
		t.Error(err)
	}
}

func TestLogWithATornLastRecordIsReadAndNotChanged(t *testing.T) {
	t.Parallel()
	const sector = 512
	for name, tear := range map[string]func(text []byte, end int) []byte{
		"it ends too early": func(text []byte, end int) []byte { return text[:end-20] },
		"a sector was not written": func(text []byte, end int) []byte {
			clear(text[end/sector*sector : end])
			return text
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := crashed(t, testbed.ClusterOptions{})
			m, work := best(t, c)
			files, err := filepath.Glob(filepath.Join(placeOf(m).log(), "*.wal"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no log: %v", err)
			}
			newest := files[len(files)-1]
			text, err := os.ReadFile(newest)
			if err != nil {
				t.Fatal(err)
			}
			torn := tear(text, len(bytes.TrimRight(text, "\x00")))
			if err := os.WriteFile(newest, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := Read(placeOf(m))
			if err != nil {
				t.Fatal(err)
			}
			if l.Index > work.Index || l.Index+10 < work.Index {
				t.Errorf("the last entry is %d, it was %d", l.Index, work.Index)
			}
			after, err := os.ReadFile(newest)
			if err != nil || !bytes.Equal(after, torn) {
				t.Errorf("the log was changed: %v", err)
			}
		})
	}
}

func TestLeftoversOfAnEarlierAttemptAreRemovedFirst(t *testing.T) {
	t.Parallel()
	c, _ := crashed(t, testbed.ClusterOptions{})
	m, work := best(t, c)
	p := placeOf(m)
	left := filepath.Join(p.copyPlace(work).snap(), "db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	huge, err := os.Create(filepath.Join(p.snap(), "huge.snap"))
	if err != nil {
		t.Fatal(err)
	}
	const more = 8 << 40 // more than any test machine's disk has; the sparse file uses no space
	if err := errors.Join(huge.Truncate(more), huge.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = Rebuild(bounded(t), p, work, m.Options.Binary, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "free space") {
		t.Errorf("a copy is made without room for it: %v", err)
	}
	if exists(left) {
		t.Error("the earlier attempt's files are still there")
	}
}

func TestFreeSpaceIsCheckedOnTheFileSystemOfTheLogToo(t *testing.T) {
	t.Parallel()
	p := Place{DataDir: "/data", WALDir: "/fast/wal"}
	c := p.copyPlace(recovery.Work{Plan: "abcdefghijkl"})
	for full, want := range map[string]bool{"/fast": false, "/slow": true} {
		err := checkSpace(p, c, 1<<20, 1<<20, func(dir string) int64 {
			if dir == full {
				return 0
			}
			return 1 << 40
		})
		if (err == nil) != want {
			t.Errorf("%s is full: %v", full, err)
		}
	}
}

// apart returns a stopped member with a separate log directory, and the work to make a cluster from it.
func apart(t *testing.T) (*testbed.Member, Place, recovery.Work) {
	t.Helper()
	logs := filepath.Join(t.TempDir(), "wal")
	m := testbed.StartCluster(t, 1, testbed.ClusterOptions{Extra: []string{"--wal-dir=" + logs}}).Members[0]
	if err := m.Terminate(); err != nil {
		t.Fatal(err)
	}
	_ = m.Wait(t.Context()) // the member was terminated
	p := Place{DataDir: placeOf(m).DataDir, WALDir: logs}
	l, err := Read(p)
	if err != nil {
		t.Fatal(err)
	}
	return m, p, recovery.Work{
		Plan: "abcdefghijkl", Cluster: 0xfeedfacecafe, Old: l.Cluster, Member: l.Member, Term: l.Term, Index: l.Index,
		Name: m.Options.Name, ClientURL: m.Options.ClientURL, PeerURL: m.Options.PeerURL,
	}
}

func TestSeparateLogIsPutInPlaceAfterAnyInterruption(t *testing.T) {
	t.Parallel()
	m, p, work := apart(t)
	if _, err := Rebuild(bounded(t), p, work, m.Options.Binary, nil, nil); err != nil {
		t.Fatal(err)
	}
	c := p.copyPlace(work)
	aside := p.member() + ".aside"
	for what, cut := range map[string]func() error{ // all but the first undo a part, which the next swap repeats
		"first swap": func() error { return nil },
		"the database was not put in place": func() error {
			return os.Rename(p.member(), c.member())
		},
	} {
		if _, err := swap(p, work); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := cut(); err != nil {
			t.Fatal(err)
		}
		if _, err := swap(p, work); err != nil || !exists(p.member()) || exists(c.member()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The rename of the database was durable, but the rename of the log was lost.
	if err := os.Rename(p.log(), c.log()); err != nil {
		t.Fatal(err)
	}
	if _, err := Swap(p, work, time.Now()); err == nil || !exists(p.member()) {
		t.Errorf("Swap succeeds without the log: %v", err)
	}
	if err := os.Rename(c.log(), p.log()); err != nil {
		t.Fatal(err)
	}
	// The database is gone.
	if err := os.Rename(p.member(), aside); err != nil {
		t.Fatal(err)
	}
	if _, err := Swap(p, work, time.Now()); err == nil {
		t.Error("Swap succeeds without the database")
	}
	if err := os.Rename(aside, p.member()); err != nil {
		t.Fatal(err)
	}
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitReady(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

func TestCopyIsNotUsedIfTheMemberHasWrittenSince(t *testing.T) {
	t.Parallel()
	c, _ := crashed(t, testbed.ClusterOptions{})
	m, work := best(t, c)
	if _, err := Rebuild(bounded(t), placeOf(m), work, m.Options.Binary, nil, nil); err != nil {
		t.Fatal(err)
	}
	work.Index-- // the log in the plan has one entry fewer
	if _, err := Rebuild(bounded(t), placeOf(m), work, m.Options.Binary, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "the plan was made for") {
		t.Errorf("the outdated copy is used: %v", err)
	}
}

func TestDataChangedSinceThePlanIsNotUsed(t *testing.T) {
	t.Parallel()
	c, _ := crashed(t, testbed.ClusterOptions{})
	m, work := best(t, c)
	work.Index++
	if _, err := Rebuild(bounded(t), placeOf(m), work, m.Options.Binary, nil, nil); err == nil {
		t.Error("a copy was made")
	}
	if _, err := Swap(placeOf(m), work, time.Now()); err == nil {
		t.Error("Swap succeeds without a copy")
	}
}

func TestDataThatAnEtcdHasOpenIsNotCopied(t *testing.T) {
	t.Parallel()
	m := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Members[0]
	l, err := Read(placeOf(m))
	if err != nil || l.Index == 0 || l.Revision != 0 {
		t.Fatalf("read %+v, %v", l, err)
	}
	work := recovery.Work{
		Plan: "abcdefghijkl", Cluster: 1, Old: l.Cluster, Member: l.Member, Term: l.Term, Index: l.Index,
	}
	if _, err := Rebuild(bounded(t), placeOf(m), work, m.Options.Binary, nil, nil); err == nil {
		t.Error("a copy was made")
	}
}

func TestOutputOfAChildIsLimited(t *testing.T) {
	t.Parallel()
	f := &Files{Command: []string{"sh", "-c", fmt.Sprintf("head -c %d /dev/zero", 2*maxLine)}}
	if _, err := f.Read(bounded(t)); err == nil || !strings.Contains(err.Error(), "is longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestSlowReadIsSharedByLaterCallers(t *testing.T) {
	t.Parallel()
	f := &Files{Command: []string{"sh", "-c", `sleep 1; echo '{"result":{"empty":true,"lastIndex":7}}'`}}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.Read(short); !errors.Is(err, recovery.ErrReading) {
		t.Fatalf("a short call returns %v", err)
	}
	first := f.currentRead()
	l, err := f.Read(bounded(t))
	if err != nil || l.Index != 7 {
		t.Fatalf("the next call returns %+v, %v", l, err)
	}
	if f.currentRead() == first {
		t.Error("a later call gets the old result")
	}
	if _, err := f.Read(bounded(t)); err != nil {
		t.Error(err)
	}
}
