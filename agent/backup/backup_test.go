// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const bound = 30 * time.Second

// etcd starts a cluster of one member and returns a client.
func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	return clientOf(t, testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Endpoints()...)
}

func clientOf(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: bound, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts keys 0 to n-1.
func write(t *testing.T, c *clientv3.Client, n int, value string) (revision int64) {
	t.Helper()
	for i := range n {
		put, err := c.Put(t.Context(), fmt.Sprintf("/keys/%d", i), value)
		must(t, err)
		revision = put.Header.Revision
	}
	return revision
}

// stream requests a member's snapshot.
func stream(t *testing.T, c *clientv3.Client) Stream {
	t.Helper()
	r, err := c.Snapshot(t.Context())
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return Stream{Reader: r, Cluster: "prod", ClusterID: "a1", Member: "b2", Host: "n1", EtcdVersion: "3.6.16"}
}

// streamOf replays a recorded snapshot stream.
func streamOf(raw []byte) Stream {
	return Stream{Reader: bytes.NewReader(raw), Cluster: "prod", Host: "n1"}
}

// rawSnapshot returns the bytes of a snapshot of a member with some keys.
func rawSnapshot(t *testing.T) []byte {
	t.Helper()
	c := etcd(t)
	write(t, c, 50, strings.Repeat("value", 100))
	raw, err := io.ReadAll(stream(t, c))
	must(t, err)
	return raw
}

func directory(t *testing.T) *Directory {
	t.Helper()
	return directoryIn(t, t.TempDir())
}

func directoryIn(t *testing.T, dir string) *Directory {
	t.Helper()
	must(t, os.Chmod(dir, 0o700))
	d, err := OpenDirectory(dir, "prod")
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{Spool: t.TempDir(), Now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
}

// files returns the names of the files in a directory store.
func files(t *testing.T, d *Directory) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(d.path)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSnapshotOfRealEtcdHasItsRevisionKeysAndHash(t *testing.T) {
	t.Parallel()
	c := etcd(t)
	steps := []struct {
		name string
		do   func()
	}{
		{"empty", func() {}},
		{"written", func() { write(t, c, 100, "first") }},
		{"written over", func() { write(t, c, 50, "second") }},
		{"deleted", func() {
			_, err := c.Delete(t.Context(), "/keys/1", clientv3.WithPrefix()) // 1 and 10 to 19
			must(t, err)
		}},
		{"compacted", func() {
			_, err := c.Compact(t.Context(), write(t, c, 3, "third"), clientv3.WithCompactPhysical())
			must(t, err)
		}},
		{"written after the compaction", func() { write(t, c, 30, "fourth") }},
		{"compacted at a deletion", func() {
			gone, err := c.Delete(t.Context(), "/keys/7")
			must(t, err)
			_, err = c.Compact(t.Context(), gone.Header.Revision, clientv3.WithCompactPhysical())
			must(t, err)
		}},
		{"written again", func() { write(t, c, 9, "fifth") }},
		{"all deleted", func() {
			_, err := c.Delete(t.Context(), "", clientv3.WithPrefix())
			must(t, err)
		}},
	}
	d, o := directory(t), options(t)
	for _, step := range steps {
		step.do()
		m, err := Save(t.Context(), d, stream(t, c), o)
		must(t, err)
		hash, err := c.HashKV(t.Context(), c.Endpoints()[0], 0)
		must(t, err)
		count, err := c.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		must(t, err)
		want := record.Contents{
			Revision: hash.Header.Revision, CompactRevision: hash.CompactRevision, Hash: hash.Hash, Keys: count.Count,
		}
		if m.Contents != want {
			t.Errorf("%s: %+v, and etcd says %+v", step.name, m.Contents, want)
		}
		must(t, Verify(t.Context(), d, m, o))
	}
	listing, err := List(t.Context(), d, nil)
	must(t, err)
	if len(listing.Snapshots) != len(steps) || len(listing.Orphans)+len(listing.Unread) > 0 {
		t.Errorf("%d snapshots, %d strays, %d "+
			"unread", len(listing.Snapshots), len(listing.Orphans), len(listing.Unread))
	}
	for i, m := range listing.Snapshots[1:] {
		if m.Revision > listing.Snapshots[i].Revision {
			t.Errorf("%s is listed after %s", m.Name, listing.Snapshots[i].Name)
		}
	}
}

func TestSnapshotIsReadBackAsEtcdSentIt(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	key, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	encrypted, err := ParseRecipients([]string{other.Recipient().String(), key.Recipient().String()})
	must(t, err)
	for _, to := range []Recipients{{}, encrypted} {
		d, o := directory(t), options(t)
		o.Recipients = to
		m, err := Save(t.Context(), d, streamOf(raw), o)
		must(t, err)
		if m.Encrypted() != (len(to.all) > 0) || m.StoredSize >= m.Size {
			t.Errorf("%+v", m)
		}
		stored, err := os.ReadFile(filepath.Join(d.path, m.DataName()))
		must(t, err)
		if bytes.Contains(stored, []byte("/keys/")) {
			t.Error("the stored data contains a readable key")
		}
		again, err := ReadManifest(t.Context(), d, m.Name)
		must(t, err)
		r, err := Open(t.Context(), d, again, Identities{key})
		must(t, err)
		got, err := io.ReadAll(r)
		must(t, err)
		must(t, r.Close())
		if !bytes.Equal(got, raw) {
			t.Error("other bytes came back")
		}
		left, err := os.ReadDir(o.Spool)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%s is left in the spool", left)
		}
	}
}

func TestSaveAndVerifyReportTheirTotal(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	d, o := directory(t), options(t)
	var how *child.Progress
	var first int64 // the first total that was reported
	reports := func(what string, do func(Options) error) {
		t.Helper()
		how, first = &child.Progress{}, 0
		o.Progress, o.Remains = how.Add, func(n int64) {
			how.Expect(n)
			if _, all := how.Now(); first == 0 {
				first = all
			}
		}
		must(t, do(o))
		done, all := how.Now()
		// The content of a database is smaller than its pages, so the job may end below the first total, but never
		// above it.
		if done > all || done < all/3 || all > first || first > 6*int64(len(raw)) {
			t.Errorf("%s: %d bytes of %d are done at the end, and the first total was %d", what, done, all, first)
		}
	}
	var m Manifest
	reports("save", func(o Options) (err error) {
		from := streamOf(raw)
		from.Size = int64(len(raw))
		m, err = Save(t.Context(), d, from, o)
		return err
	})
	if done, all := how.Now(); done != all {
		t.Error("the save does not end with reading back")
	}
	reports("verify", func(o Options) error { return Verify(t.Context(), d, m, o) })
}

func TestEncryptedSnapshotOpensOnlyWithItsIdentity(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	key, err := age.GenerateX25519Identity()
	must(t, err)
	wrong, err := age.GenerateX25519Identity()
	must(t, err)
	d, o := directory(t), options(t)
	o.Recipients, err = ParseRecipients([]string{key.Recipient().String()})
	must(t, err)
	m, err := Save(t.Context(), d, streamOf(raw), o)
	must(t, err)
	for with, want := range map[*age.X25519Identity]string{
		nil:   "it is encrypted, and this host has no identity to decrypt it",
		wrong: "add a matching identity to backup.identityFile",
	} {
		var identities Identities
		if with != nil {
			identities = Identities{with}
		}
		if _, err := Open(t.Context(), d, m, identities); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	secret := filepath.Join(t.TempDir(), "identities")
	must(t, os.WriteFile(secret, []byte("AGE-SECRET-KEY-1VERYSECRET"), 0o400))
	if _, err := ReadIdentities(secret); err == nil ||
		strings.Contains(err.Error(), "VERYSECRET") {
		t.Errorf("%v", err)
	}
	if _, err := ParseRecipients([]string{"age1nobody"}); err == nil {
		t.Error("age1nobody is a recipient")
	}
}

func TestDamagedSnapshotIsNeverReadAsWhole(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	key, err := age.GenerateX25519Identity()
	must(t, err)
	to, err := ParseRecipients([]string{key.Recipient().String()})
	must(t, err)
	for _, recipients := range []Recipients{{}, to} {
		d, o := directory(t), options(t)
		o.Recipients, o.Identities = recipients, Identities{key}
		m, err := Save(t.Context(), d, streamOf(raw), o)
		must(t, err)
		path := filepath.Join(d.path, m.DataName())
		whole, err := os.ReadFile(path)
		must(t, err)
		damage := map[string][]byte{
			"empty": {}, "cut off": whole[:len(whole)-1], "half": whole[:len(whole)/2],
			"longer": append(bytes.Clone(whole), 0), "twice": append(bytes.Clone(whole), whole...),
		}
		for at := 0; at < len(whole); at += len(whole)/40 + 1 {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1
			damage[fmt.Sprintf("flipped at %d", at)] = flipped
		}
		for name, content := range damage {
			must(t, os.WriteFile(path, content, 0o600))
			if err := Verify(t.Context(), d, m, o); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, os.Remove(path))
		if err := Verify(t.Context(), d, m, o); !errors.Is(err, ErrNoSnapshot) {
			t.Errorf("removed: %v", err)
		}
	}
}

func TestDatabaseThatThisHostCannotOpenIsNotCalledDamaged(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	must(t, file.Close())
	_, err = etcddb.Inspect(t.Context(), file, func(int64) {})
	if err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestManifestThatDoesNotMatchTheDataIsDetected(t *testing.T) {
	t.Parallel()
	d, o := directory(t), options(t)
	m, err := Save(t.Context(), d, streamOf(rawSnapshot(t)), o)
	must(t, err)
	for name, change := range map[string]func(*Manifest){
		"hash": func(m *Manifest) { m.Hash++ },
		"keys": func(m *Manifest) { m.Keys-- }, "compaction": func(m *Manifest) { m.CompactRevision = 3 },
		"smaller": func(m *Manifest) { m.Size-- }, "larger": func(m *Manifest) { m.Size++ },
	} {
		wrong := m
		change(&wrong)
		if err := Verify(t.Context(), d, wrong, o); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIncompleteStreamIsNotSaved(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	flipped := bytes.Clone(raw)
	flipped[len(raw)/3] ^= 4
	notEtcd := bytes.Repeat([]byte{7}, 4096)
	sum := sha256.Sum256(notEtcd)
	for name, sent := range map[string][]byte{
		"nothing": {}, "cut off": raw[:len(raw)-sha256.Size], "half": raw[:len(raw)/2], "flipped": flipped,
		"no database": append(notEtcd, sum[:]...),
	} {
		d, o := directory(t), options(t)
		if _, err := Save(t.Context(), d, streamOf(sent), o); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if left := files(t, d); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

// failing is a store in which one operation is faulty.
type failing struct {
	*Directory

	after    int64 // number of bytes of an object that the store accepts; 0 for no limit
	manifest error
	corrupts bool // the store returns bytes that differ from the written ones
}

var errFull = errors.New("no space left on device")

func (f failing) Put(ctx context.Context, name string, content io.Reader) error {
	if f.after > 0 {
		content = io.MultiReader(io.LimitReader(content, f.after), failingReader{})
	}
	return f.Directory.Put(ctx, name, content)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errFull }

func (f failing) PutIfAbsent(ctx context.Context, name string, content []byte) error {
	if f.manifest != nil {
		return f.manifest
	}
	return f.Directory.PutIfAbsent(ctx, name, content)
}

func (f failing) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if f.corrupts {
		return io.NopCloser(strings.NewReader("something else")), nil
	}
	return f.Directory.Get(ctx, name)
}

func TestFailedSaveLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	raw := rawSnapshot(t)
	for name, f := range map[string]failing{
		"full":                {after: 100},
		"no manifest":         {manifest: errFull},
		"returns other bytes": {corrupts: true},
	} {
		f.Directory = directory(t)
		_, err := Save(t.Context(), f, streamOf(raw), options(t))
		if want := map[bool]error{true: ErrDamaged, false: errFull}[f.corrupts]; !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if left := files(t, f.Directory); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

func TestOneOfTwoConcurrentWritersGetsTheName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 20 {
		name := fmt.Sprintf("manifest-%d", round)
		var won sync.Map
		var all sync.WaitGroup
		for writer := range 8 {
			d := directoryIn(t, dir)
			all.Go(func() {
				text := fmt.Sprintf("writer %d", writer)
				if d.PutIfAbsent(t.Context(), name, []byte(text)) == nil {
					won.Store(text, true)
				}
			})
		}
		all.Wait()
		there, err := os.ReadFile(filepath.Join(dir, "prod", name))
		must(t, err)
		count := 0
		won.Range(func(any, any) bool { count++; return true })
		if _, is := won.Load(string(there)); count != 1 || !is {
			t.Fatalf("%d of the writes have succeeded, and the file contains %q", count, there)
		}
	}
}

func TestDirectoryThatOthersMayChangeIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o770))
	if _, err := OpenDirectory(dir, "prod"); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("%v", err)
	}
	must(t, os.Chmod(dir, 0o700))
	for _, cluster := range []string{"", "..", ".", "a/b", "/etc"} {
		if d, err := OpenDirectory(dir, cluster); err == nil && cluster != "." {
			t.Errorf("%q is %s", cluster, d.path)
		}
	}
	missing := filepath.Join(dir, "mount-that-is-missing")
	if _, err := OpenDirectory(missing, "prod"); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "mount its file system, or create it: install -d -m 0700 -o quorumd "+missing) {
		t.Errorf("%v", err)
	}
	elsewhere := t.TempDir()
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "prod")))
	if _, err := OpenDirectory(dir, "prod"); err == nil {
		t.Error("a link to elsewhere is followed")
	}
}

// TestErrorForAnUnwritableDirectoryNamesTheRemedy uses a directory in which even root cannot write.
func TestErrorForAnUnwritableDirectoryNamesTheRemedy(t *testing.T) {
	t.Parallel()
	const kernels = "/sys"
	says := func(what string, err error, want string, dir string) {
		t.Helper()
		text := fmt.Sprint(err)
		if !strings.Contains(text, want) ||
			!strings.Contains(text, "chown quorumd "+dir) && !strings.Contains(text, "ReadWritePaths="+dir) {
			t.Errorf("%s: %v, want %q and a remedy", what, err, want)
		}
	}
	_, err := OpenDirectory(kernels, "prod")
	says("a cluster's own is to be made", err, "cannot use the directory /sys: mkdirat prod: ", kernels)
	root, err := os.OpenRoot(kernels)
	must(t, err)
	d := &Directory{root: root, path: kernels, space: SpaceOf}
	t.Cleanup(func() { d.Close() })
	_, err = Save(t.Context(), d, streamOf(rawSnapshot(t)), options(t))
	says("a snapshot is to be saved", err, "cannot save a snapshot: cannot write into /sys: ", kernels)
	for refused, want := range map[error]string{
		syscall.EACCES: "permission denied: let the user that quorumd runs as write there: chown quorumd /srv/x",
		syscall.EPERM:  "operation not permitted: let the user that quorumd runs as write there",
		syscall.EROFS:  "read-only file system: mount it read-write, and add ReadWritePaths=/srv/x to the service",
	} {
		says("refused", withRemedy(&os.PathError{Op: "openat", Path: "x", Err: refused}, "/srv/x"), want, "/srv/x")
	}
	if got := withRemedy(syscall.ENOSPC, "/srv/x"); got != error(syscall.ENOSPC) {
		t.Errorf("another error becomes %v", got)
	}
}

func TestStraysInAStoreAreListed(t *testing.T) {
	t.Parallel()
	d := directory(t)
	m, err := Save(t.Context(), d, streamOf(rawSnapshot(t)), options(t))
	must(t, err)
	name := func(hex string) string { return m.Name[:len(m.Name)-16] + hex }
	for file, text := range map[string]string{
		"README":                                  "hello",
		name("00000000000000aa") + dataEnding:     "no manifest",
		name("00000000000000bb") + manifestEnding: "{}",
		unfinished + "ABCD":                       "half",
		name("00000000000000dd") + dataEnding:     "its manifest is invalid",
		name("00000000000000dd") + manifestEnding: `{"version": 2}`,
		name("00000000000000ee") + dataEnding:     "its manifest is too large",
		name("00000000000000ee") + manifestEnding: strings.Repeat(" ", maxManifest+1),
	} {
		must(t, os.WriteFile(filepath.Join(d.path, file), []byte(text), 0o600))
	}
	l, err := List(t.Context(), d, nil)
	must(t, err)
	if len(l.Snapshots) != 1 || l.Snapshots[0].Name != m.Name || len(l.Orphans) != 3 || len(l.Unread) != 2 {
		t.Errorf("%+v", l)
	}
	must(t, Remove(t.Context(), d, m))
	if _, err := ReadManifest(t.Context(), d, m.Name); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
	if _, err := ReadManifest(t.Context(), d, "../../etc/passwd"); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("%v", err)
	}
}
