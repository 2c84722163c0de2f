// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// fixture unpacks a data directory from testdata.
func fixture(t *testing.T, name string) Place {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	p := Place{DataDir: t.TempDir()}
	for files := tar.NewReader(packed); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(p.DataDir, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var text []byte
			if text, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// workOf38 returns the content of a data directory, and the work to make a cluster from it.
func workOf38(t *testing.T, p Place) (recovery.Log, recovery.Work) {
	t.Helper()
	l, err := Read(p)
	if err != nil {
		t.Fatal(err)
	}
	ports := testbed.FreePorts(t, 2)
	return l, recovery.Work{
		Plan: "abcdefghijkl", Cluster: 0xfeedfacecafe, Old: l.Cluster, Member: l.Member, Term: l.Term, Index: l.Index,
		Name: "n1", ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		PeerURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	}
}

// copies makes a copy and checks that it has the whole log after an entry that its database contains.
func copies(t *testing.T, p Place, w recovery.Work) {
	t.Helper()
	c := p.copyPlace(w)
	if err := errors.Join(os.Mkdir(c.DataDir, ownerAll), copyData(p, c, w, nil)); err != nil {
		t.Fatal(err)
	}
	db, err := appliedIn(c.database())
	if err != nil {
		t.Fatal(err)
	}
	h, err := readLog(c, db)
	if err != nil {
		t.Fatal(err)
	}
	term, index := h.last()
	if from := h.from.GetIndex(); from == 0 || from > db.index || uint64(len(h.entries)) != index-from ||
		h.entries[0].GetIndex() != from+1 || len(h.from.GetConfState().GetVoters()) == 0 {
		t.Errorf("the copy has entries %d to %d after snapshot entry %d, its database contains entries up to %d",
			h.entries[0].GetIndex(), index, from, db.index)
	}
	if term != w.Term || index != w.Index || h.state.GetCommit() != index {
		t.Errorf("the last entry is %d of term %d, committed up to %d: the data has %+v", index, term,
			h.state.GetCommit(), w)
	}
}

func TestEtcd38DataIsCopiedWithoutOrWithOldSnapFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]recovery.Log{
		"etcd-3.8-n2": {Term: 3, Index: 1536, Revision: 1515},
		"etcd-3.8-n4": {Term: 3, Index: 1535, Revision: 1518},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fixture(t, name)
			l, work := workOf38(t, p)
			if l.Term != want.Term || l.Index != want.Index || l.Revision != want.Revision || len(l.Members) != 4 {
				t.Errorf("read %+v", l)
			}
			copies(t, p, work)
		})
	}
}

// lostSnapFiles returns a stopped member that has neither .snap files nor the beginning of its log.
func lostSnapFiles(t *testing.T) (*testbed.Member, Place) {
	t.Helper()
	m := testbed.StartCluster(t, 1, testbed.ClusterOptions{Extra: []string{"--snapshot-count=10"}}).Members[0]
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 60 { // more than a segment
		if _, err := client.Put(bounded(t), fmt.Sprintf("load/%d", i), strings.Repeat("x", 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Terminate(); err != nil {
		t.Fatal(err)
	}
	_ = m.Wait(t.Context()) // the member was terminated
	p := placeOf(m)
	files, err := filepath.Glob(filepath.Join(p.snap(), "*.snap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no snap files: %v", err)
	}
	segments, err := filepath.Glob(filepath.Join(p.log(), "*.wal"))
	if err != nil || len(segments) < 2 {
		t.Fatalf("the log has %d segments: %v", len(segments), err)
	}
	for _, path := range append(files, segments[0]) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return m, p
}

func TestDataWithoutSnapFilesAndOldSegmentsIsCopied(t *testing.T) {
	t.Parallel()
	_, p := lostSnapFiles(t)
	_, work := workOf38(t, p)
	copies(t, p, work)
}

func TestDataWithoutSnapFilesRunsAloneWithAnEtcdThatNeedsNone(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		for _, name := range []string{"etcd-3.8-n2", "etcd-3.8-n4", "lost"} {
			t.Run(version+" "+name, func(t *testing.T) {
				t.Parallel()
				var p Place
				if name == "lost" {
					_, p = lostSnapFiles(t)
				} else {
					p = fixture(t, name)
				}
				before, work := workOf38(t, p)
				etcd := testbed.Etcd(t, version)
				result, err := Rebuild(bounded(t), p, work, etcd, nil, nil)
				if !opens(version, name) {
					if err == nil || !strings.Contains(err.Error(), "cannot turn the copy into a new cluster") {
						t.Errorf("an etcd that cannot open the data: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if result.Before < before.Revision {
					t.Errorf("the copy has revision %d, the database had %d", result.Before, before.Revision)
				}
				if _, err := swap(p, work); err != nil {
					t.Fatal(err)
				}
				started(t, p, work, etcd)
			})
		}
	}
}

// opens reports whether an etcd of that version starts from the data: 3.6 needs .snap files, and no version opens the
// data of a later minor version.
func opens(version, data string) bool {
	newest := []string{"v3.8", "v3.8/small"}
	return slices.Contains(newest, version) || data == "lost" && version == "v3.7"
}

// started runs the member on its copy and checks that it is alone and accepts writes.
func started(t *testing.T, p Place, w recovery.Work, etcd string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Rename(p.DataDir, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	m, err := testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: etcd, Name: w.Name, Dir: dir, ClientURL: w.ClientURL, PeerURL: w.PeerURL,
		InitialCluster: w.Name + "=" + w.PeerURL, State: "existing", Token: "testbed",
	})
	if err != nil {
		t.Fatal(err)
	}
	m.StopAfter(t)
	if err := m.WaitReady(bounded(t)); err != nil {
		t.Fatal(err)
	}
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.MemberList(bounded(t))
	if err != nil || len(list.Members) != 1 || list.Members[0].ID != uint64(w.Member) {
		t.Errorf("the members are %v: %v", list, err)
	}
	keys, err := client.Get(bounded(t), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || keys.Count < 60 {
		t.Errorf("it has %v keys: %v", keys, err)
	}
	put, err := client.Put(bounded(t), "after", "x")
	if err != nil || put.Header.Revision <= bump {
		t.Errorf("the next revision is %v: %v", put, err)
	}
	saved(t, client)
}

func TestSnapshotEntryAboveTheDatabaseNeedsItsOwnDatabase(t *testing.T) {
	t.Parallel()
	p := fixture(t, "etcd-3.8-n4")
	named, err := wal.ValidSnapshotEntries(zap.NewNop(), p.log())
	if err != nil || len(named) < 3 {
		t.Fatalf("the log names %d snapshots: %v", len(named), err)
	}
	oldest, middle, last := named[0], named[1], named[len(named)-1]
	chosen := func(db appliedState) uint64 {
		t.Helper()
		s, err := newestSnapshot(p, db)
		if err != nil {
			t.Fatal(err)
		}
		return s.GetIndex()
	}
	is := func(what string, db appliedState, want uint64) {
		t.Helper()
		if got := chosen(db); got != want {
			t.Errorf("%s: the snapshot entry is %d, want %d", what, got, want)
		}
	}
	is("a database up to an entry", appliedState{index: middle.GetIndex()}, middle.GetIndex())
	is("a database just before that entry", appliedState{index: middle.GetIndex() - 1}, oldest.GetIndex())
	is("a database before all entries", appliedState{index: oldest.GetIndex() - 1}, 0)
	is("a database that an etcd has open", unreadable(), last.GetIndex())
	file := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.snap(), name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := appliedState{index: last.GetIndex(), files: true}
	is("an etcd that needs .snap files, without any", before, last.GetIndex())
	file(fmt.Sprintf("%016x-%016x.snap", middle.GetTerm(), middle.GetIndex()))
	is("an etcd that needs .snap files", before, middle.GetIndex())
	is("an etcd that needs no .snap file, with an old one", appliedState{index: last.GetIndex()}, last.GetIndex())
	file(fmt.Sprintf("%016x.snap.db", last.GetIndex()))
	is("a database that the leader has sent", appliedState{index: oldest.GetIndex()}, last.GetIndex())
}
