// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package restoretest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// restoreTestIn is the environment variable that makes the test binary run a restore test. Its value is the store, the
// spool and the etcd binary, separated by "|".
const restoreTestIn = "RESTORE_TEST"

func TestMain(m *testing.M) {
	if args := strings.Split(os.Getenv(restoreTestIn), "|"); len(args) == 3 {
		if err := restoreTestAlone(args[0], args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func restoreTestAlone(store, spool, etcd string) error {
	ctx := context.Background()
	from, err := backup.OpenDirectory(store, "prod")
	if err != nil {
		return err
	}
	l, err := backup.List(ctx, from, nil)
	if err != nil {
		return err
	}
	_, err = Run(ctx, from, l.Snapshots[0].Manifest, etcd, backup.Options{Spool: spool})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// versions returns the etcd versions to test: the tests' usual version, or those that 'make test-matrix' sets.
func versions() []string {
	if named := strings.Fields(os.Getenv("QUORUMD_ETCD_VERSIONS")); len(named) > 0 {
		return named
	}
	return []string{testbed.Small}
}

// place is a store in a directory, and a spool.
type place struct {
	dir   string
	store *backup.Directory
	o     backup.Options
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	store, err := backup.OpenDirectory(dir, "prod")
	must(t, err)
	t.Cleanup(func() { store.Close() })
	return place{dir: dir, store: store, o: backup.Options{Spool: t.TempDir(), Now: time.Now()}}
}

func (p place) save(t *testing.T, c *clientv3.Client) backup.Manifest {
	t.Helper()
	r, err := c.Snapshot(t.Context())
	must(t, err)
	defer r.Close()
	m, err := backup.Save(t.Context(), p.store, backup.Stream{Reader: r, Cluster: "prod", Host: "n1"}, p.o)
	must(t, err)
	return m
}

// empty fails the test if anything but the lock is left in the spool.
func (p place) empty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(p.o.Spool)
	must(t, err)
	for _, e := range left {
		if e.Name() != lockName {
			t.Errorf("%s is left in the spool", e.Name())
		}
	}
}

func write(t *testing.T, c *clientv3.Client, n int) {
	t.Helper()
	for i := range n {
		_, err := c.Put(t.Context(), fmt.Sprintf("/keys/%d", i), strings.Repeat("value", 100))
		must(t, err)
	}
}

func TestSnapshotOfThreeMembersIsServedByAnIsolatedEtcd(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cluster := testbed.StartCluster(t, 3, testbed.ClusterOptions{Version: version})
			c, p := cluster.Client(t), newPlace(t)
			passes := func(what string) {
				t.Helper()
				m := p.save(t, c)
				served, err := Run(t.Context(), p.store, m, cluster.Members[0].Options.Binary, p.o)
				if err != nil || !strings.HasPrefix(served, version[1:4]) {
					t.Errorf("%s: %q, %v", what, served, err)
				}
				p.empty(t)
			}
			passes("empty")
			write(t, c, 300)
			passes("written")
			gone, err := c.Delete(t.Context(), "/keys/1", clientv3.WithPrefix())
			must(t, err)
			lease, err := c.Grant(t.Context(), 1) // the lease may expire before the restored data is compared
			must(t, err)
			_, err = c.Put(t.Context(), "/leased", "for a second", clientv3.WithLease(lease.ID))
			must(t, err)
			passes("deleted, and leased")
			_, err = c.Compact(t.Context(), gone.Header.Revision, clientv3.WithCompactPhysical())
			must(t, err)
			passes("compacted")
			_, err = c.RoleAdd(t.Context(), "root")
			must(t, err)
			_, err = c.UserAdd(t.Context(), "root", "secret")
			must(t, err)
			_, err = c.UserGrantRole(t.Context(), "root", "root")
			must(t, err)
			m := p.save(t, c)
			_, err = c.AuthEnable(t.Context())
			must(t, err)
			known, err := clientv3.New(clientv3.Config{
				Endpoints: cluster.Endpoints(), Username: "root", Password: "secret", DialTimeout: time.Minute,
			})
			must(t, err)
			t.Cleanup(func() { known.Close() })
			c = known
			passes("with passwords")
			if _, err := Run(t.Context(), p.store, m, cluster.Members[0].Options.Binary, p.o); err != nil {
				t.Errorf("an older one: %v", err)
			}
		})
	}
}

func TestDamagedSnapshotFailsTheRestoreTest(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	c, p, etcd := cluster.Client(t), newPlace(t), cluster.Members[0].Options.Binary
	write(t, c, 50)
	m := p.save(t, c)
	path := filepath.Join(p.dir, "prod", m.DataName())
	whole, err := os.ReadFile(path)
	must(t, err)
	flipped := append([]byte{}, whole...)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"cut off": whole[:len(whole)-1], "flipped": flipped} {
		must(t, os.WriteFile(path, content, 0o600))
		if _, err := Run(t.Context(), p.store, m, etcd, p.o); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		p.empty(t)
	}
	must(t, os.Remove(path))
	if _, err := Run(t.Context(), p.store, m, etcd, p.o); !errors.Is(err, backup.ErrNoSnapshot) {
		t.Errorf("without its data: %v", err)
	}
	p.empty(t)
}

// TestServedDataIsComparedWithTheManifest uses an intact database and manifests that do not match it.
func TestServedDataIsComparedWithTheManifest(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	c, p := cluster.Client(t), newPlace(t)
	write(t, c, 50)
	m := p.save(t, c)
	for name, change := range map[string]func(*backup.Manifest){
		"fewer keys": func(m *backup.Manifest) { m.Keys++ }, "another hash": func(m *backup.Manifest) { m.Hash++ },
		"an older revision": func(m *backup.Manifest) { m.Revision++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
			database := filepath.Join(dir, "member", "snap", "db")
			must(t, backup.Restore(t.Context(), p.store, m, database, p.o))
			must(t, newCluster(dir, database))
			wrong := m
			change(&wrong)
			held, err := hold(dir)
			must(t, err)
			defer held.Close()
			_, err = serve(t.Context(), dir, cluster.Members[0].Options.Binary, held, wrong, func(int64) {})
			if !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrorOfAFailedEtcdQuotesItsLastOutput(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	p := newPlace(t)
	m := p.save(t, cluster.Client(t))
	for etcd, want := range map[string]string{
		"/nowhere/etcd": "cannot start /nowhere/etcd",
		"/bin/false":    "etcd (/bin/false) exited during the restore test: exit status 1",
	} {
		if _, err := Run(t.Context(), p.store, m, etcd, p.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		p.empty(t)
	}
}

// TestKilledEtcdIsNoEvidenceAgainstTheSnapshot kills an etcd as the kernel does if memory runs out.
func TestKilledEtcdIsNoEvidenceAgainstTheSnapshot(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	p := newPlace(t)
	m := p.save(t, cluster.Client(t))
	script := filepath.Join(t.TempDir(), "etcd")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\nkill -KILL $$\n"), 0o700)) //nolint:gosec // it is to be run
	_, err := Run(t.Context(), p.store, m, script, p.o)
	if !errors.Is(err, ErrKilled) || errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "MemoryMax=") {
		t.Errorf("%v", err)
	}
	p.empty(t)
}

func TestKilledRestoreTestEndsItsEtcdAndTheNextOneCleansUp(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	c, p, etcd := cluster.Client(t), newPlace(t), cluster.Members[0].Options.Binary
	write(t, c, 50)
	m := p.save(t, c)
	script, pid := filepath.Join(t.TempDir(), "etcd"), filepath.Join(t.TempDir(), "pid")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s.new && mv %[1]s.new %[1]s && kill -STOP $$ && exec %s \"$@\"\n", pid,
		etcd)
	must(t, os.WriteFile(script, []byte(text), 0o700)) //nolint:gosec // it is to be run
	kill := func() {
		t.Helper()
		_ = os.Remove(pid) // left by the previous call
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), restoreTestIn+"="+strings.Join([]string{p.dir, p.o.Spool, script}, "|"))
		must(t, command.Start())
		testbed.Eventually(t, time.Minute, "its etcd is about to run", func() bool {
			_, err := os.Stat(pid)
			return err == nil
		})
		if err := Sweep(p.o.Spool); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(p.o.Spool, dirName)); err != nil {
			t.Errorf("the files of a running test were removed: %v", err)
		}
		if _, err := Run(t.Context(), p.store, m, etcd, p.o); !errors.Is(err, errRunning) {
			t.Errorf("a second one at the same time: %v", err)
		}
		must(t, command.Process.Kill())
		_ = command.Wait() // an error is expected: the process was killed
		number, err := os.ReadFile(pid)
		must(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(number)))
		must(t, err)
		testbed.Eventually(t, time.Minute, "its etcd is gone", func() bool {
			return errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
		})
	}
	kill()
	must(t, Sweep(p.o.Spool))
	p.empty(t)
	kill()
	_, err := Run(t.Context(), p.store, m, etcd, p.o)
	must(t, err)
	p.empty(t)
}

func TestEncryptedSnapshotIsTestedIfItsKeyIsPresent(t *testing.T) {
	t.Parallel()
	cluster := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	p, etcd := newPlace(t), cluster.Members[0].Options.Binary
	key, err := age.GenerateX25519Identity()
	must(t, err)
	p.o.Recipients, err = backup.ParseRecipients([]string{key.Recipient().String()})
	must(t, err)
	m := p.save(t, cluster.Client(t))
	if _, err := Run(t.Context(), p.store, m, etcd, p.o); !errors.Is(err, backup.ErrNoIdentity) {
		t.Errorf("without it: %v", err)
	}
	p.empty(t)
	p.o.Identities = backup.Identities{key}
	_, err = Run(t.Context(), p.store, m, etcd, p.o)
	must(t, err)
	p.empty(t)
}
