// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const snapshotMember = 0xabad1dea

// memberSnapshot is a snapshot from a member, and the work to make a cluster from it.
type memberSnapshot struct {
	text []byte
	work recovery.Work
	last int64 // its revision
}

// snapshotOf writes to a cluster of three, including a deletion and a compaction, and saves a snapshot.
func snapshotOf(t *testing.T, version string) (*testbed.Cluster, memberSnapshot) {
	t.Helper()
	c := testbed.StartCluster(t, 3, testbed.ClusterOptions{Version: version})
	client := c.Client(t)
	var last int64
	for i := range 40 {
		answer, err := client.Put(bounded(t), fmt.Sprintf("load/%d", i%20), strings.Repeat("x", i))
		if err != nil {
			t.Fatal(err)
		}
		last = answer.Header.Revision
	}
	gone, err := client.Delete(bounded(t), "load/3")
	if err != nil {
		t.Fatal(err)
	}
	last = max(last, gone.Header.Revision)
	if _, err := client.Compact(bounded(t), last-10); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Members { // any of them may send the snapshot
		testbed.Eventually(t, time.Minute, m.Options.Name+" to apply all writes", func() bool {
			status, err := client.Status(bounded(t), m.Options.ClientURL)
			return err == nil && status.Header.Revision >= last
		})
	}
	raw, err := client.Snapshot(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	text, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "sent.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		t.Fatal(err)
	}
	contents, err := etcddb.Inspect(bounded(t), file, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	host := c.Members[0].Options
	return c, memberSnapshot{text: text, last: last, work: recovery.Work{
		Plan: "abcdefghijkl", Cluster: 0xfeedfacecafe, Member: snapshotMember, Name: host.Name,
		ClientURL: host.ClientURL, PeerURL: host.PeerURL,
		Snapshot: &recovery.Snapshot{
			Name: "a", Contents: contents, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]),
			Member: snapshotMember,
		},
	}}
}

func down(t *testing.T, c *testbed.Cluster) {
	t.Helper()
	for _, m := range c.Members {
		if err := m.Kill9(); err != nil {
			t.Fatal(err)
		}
		_ = m.Wait(t.Context()) // the member was killed
	}
}

func TestSnapshotRunsAloneWithItsKeysWithAndWithoutOldData(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		for _, empty := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, no data: %t", version, empty), func(t *testing.T) {
				t.Parallel()
				c, s := snapshotOf(t, version)
				down(t, c)
				m := c.Members[0]
				p := placeOf(m)
				if empty {
					if err := os.RemoveAll(p.DataDir); err != nil {
						t.Fatal(err)
					}
				}
				result, err := Rebuild(bounded(t), p, s.work, m.Options.Binary, bytes.NewReader(s.text), nil)
				if err != nil {
					t.Fatal(err)
				}
				again, err := Rebuild(bounded(t), p, s.work, "/bin/false", nil, nil)
				if err != nil || again != result || result.Before != s.last {
					t.Errorf("the second call returns %+v, %v; the first %+v, the snapshot has revision %d",
						again, err, result, s.last)
				}
				for range 2 { // repeating the swap changes nothing
					if _, err := Swap(p, s.work, time.Now()); err != nil {
						t.Fatal(err)
					}
				}
				fromSnapshot(t, m, s)
				joins(t, c, m)
			})
		}
	}
}

// fromSnapshot starts the member and checks that it is the only member of its cluster, with the keys of the snapshot.
func fromSnapshot(t *testing.T, m *testbed.Member, s memberSnapshot) {
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
	if len(list.Members) != 1 || list.Header.ClusterId != uint64(s.work.Cluster) ||
		list.Members[0].ID != snapshotMember || list.Members[0].IsLearner {
		t.Errorf("the members are %v of cluster %x", list.Members, list.Header.ClusterId)
	}
	for i := range 20 {
		answer, err := client.Get(bounded(t), fmt.Sprintf("load/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("x", 20+i)
		if i == 3 && len(answer.Kvs) != 0 || i != 3 && (len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != want) {
			t.Errorf("load/%d is %v", i, answer.Kvs)
		}
	}
	put, err := client.Put(bounded(t), "after", "x")
	if err != nil || put.Header.Revision <= s.last+bump {
		t.Errorf("the next revision is %v: %v", put, err)
	}
	answer := <-client.Watch(bounded(t), "load/", clientv3.WithPrefix(), clientv3.WithRev(s.last))
	if !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watcher that resumes gets %v", answer.Err())
	}
	saved(t, client)
}

// joins adds a second member, which must also get the keys, although they are not in the log.
func joins(t *testing.T, c *testbed.Cluster, alone *testbed.Member) {
	t.Helper()
	client, err := alone.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	next := c.Members[1]
	testbed.Eventually(t, time.Minute, "a learner is added", func() bool {
		_, err = client.MemberAddAsLearner(bounded(t), []string{next.Options.PeerURL})
		return err == nil
	})
	if err := os.RemoveAll(placeOf(next).DataDir); err != nil {
		t.Fatal(err)
	}
	next.Options.State = "existing"
	next.Options.InitialCluster = fmt.Sprintf("%s=%s,%s=%s", alone.Options.Name, alone.Options.PeerURL,
		next.Options.Name, next.Options.PeerURL)
	if err := next.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	learner, err := next.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer learner.Close()
	testbed.Eventually(t, time.Minute, "the learner has the 19 keys", func() bool {
		answer, err := learner.Get(bounded(t), "load/", clientv3.WithPrefix(), clientv3.WithSerializable())
		return err == nil && len(answer.Kvs) == 19
	})
}

func TestSnapshotThatDiffersFromThePlanIsNotUsedAndTheDataStays(t *testing.T) {
	t.Parallel()
	c, s := snapshotOf(t, testbed.Small)
	down(t, c)
	m := c.Members[0]
	before, err := Read(placeOf(m))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(s.text)
	flipped[len(flipped)/2] ^= 1
	file := filepath.Join(t.TempDir(), "flipped.db")
	if err := os.WriteFile(file, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	other := *s.work.Snapshot
	other.Hash++
	byPath := *s.work.Snapshot
	byPath.Name, byPath.File = "", file
	noFile := byPath
	noFile.File = t.TempDir()
	for what, try := range map[string]struct {
		snapshot recovery.Snapshot
		text     []byte
		wantErr  string
	}{
		"cut off":        {*s.work.Snapshot, s.text[:len(s.text)/2], "the snapshot is damaged"},
		"nothing":        {*s.work.Snapshot, nil, "the snapshot is damaged"},
		"a bit flipped":  {*s.work.Snapshot, flipped, "its SHA-256 differs from the one at its end"},
		"too long":       {*s.work.Snapshot, append(bytes.Clone(s.text), s.text...), "the snapshot is damaged"},
		"another":        {other, s.text, "but the plan has"},
		"a changed file": {byPath, nil, "its SHA-256 differs from the one at its end"},
		"a directory":    {noFile, nil, "it is not a regular file"},
	} {
		work := s.work
		work.Snapshot = &try.snapshot
		_, err := Rebuild(bounded(t), placeOf(m), work, m.Options.Binary, bytes.NewReader(try.text), nil)
		if err == nil || !strings.Contains(err.Error(), try.wantErr) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := Swap(placeOf(m), work, time.Now()); err == nil {
			t.Errorf("%s: Swap succeeds", what)
		}
	}
	if after, err := Read(placeOf(m)); err != nil || after.Index != before.Index || after.Cluster != before.Cluster {
		t.Errorf("the data was %+v and is %+v: %v", before, after, err)
	}
}

func TestErrorOfATruncatedDatabaseNamesTheFailedStore(t *testing.T) {
	t.Parallel()
	f := &Files{
		Command: []string{"sh", "-c", "cat > /dev/null; echo 'it is cut off' >&2; exit 1", "child"},
		Fetch:   []string{"sh", "-c", `echo "the store lost $0" >&2; exit 1`},
	}
	work := recovery.Work{Snapshot: &recovery.Snapshot{Name: "snapshot-7"}}
	is := func(want string) {
		t.Helper()
		err := f.rebuild(bounded(t), &recovery.Result{}, work)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	is("the store lost snapshot-7")
	f.Fetch = []string{"sh", "-c", "echo data"}
	is("it is cut off")
	f.Fetch = nil
	is("this host has no snapshot store configured")
}
