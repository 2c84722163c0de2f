// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestAReplacedSnapshotIsNeitherVerifiedNorTestedNorFetched uses an intact snapshot whose manifest differs from the one
// that this host has recorded.
func TestAReplacedSnapshotIsNeitherVerifiedNorTestedNorFetched(t *testing.T) {
	t.Parallel()
	noError := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	noError(os.Chmod(dir, 0o700))
	store, err := backup.OpenDirectory(dir, "prod")
	noError(err)
	defer store.Close()
	r, err := testbed.StartCluster(t, 1, testbed.ClusterOptions{}).Client(t).Snapshot(t.Context())
	noError(err)
	defer r.Close()
	o := backup.Options{Spool: t.TempDir(), Now: time.Now()}
	m, err := backup.Save(t.Context(), store, backup.Stream{Reader: r, Cluster: "prod", Host: "n1"}, o)
	noError(err)
	j := job{store: store, options: o, evidence: backup.Evidence{{
		Name: m.Name, SHA256: fmt.Sprintf("%064x", 1), Saved: o.Now, Host: "n1",
	}}}
	for _, kind := range []string{"verify", "restoreTest"} {
		for _, name := range []string{m.Name, ""} {
			if _, err := j.do(t.Context(), kind, []string{name}); !errors.Is(err, backup.ErrReplaced) {
				t.Errorf("%s %q: %v", kind, name, err)
			}
		}
	}
	marks, err := filepath.Glob(filepath.Join(dir, "prod", "*ed"))
	if err != nil || len(marks) != 0 {
		t.Errorf("marks were written: %v, %v", marks, err)
	}
	out, err := j.do(t.Context(), "list", nil)
	if err != nil || len(out.Snapshots) != 1 || out.Snapshots[0].Origin != record.OriginExchanged {
		t.Errorf("listed: %+v, %v", out.Snapshots, err)
	}
	j.evidence = backup.Evidence{record.Manifest{Name: m.Name, SHA256: m.SHA256, Saved: o.Now, Host: "n1"}}
	out, err = j.do(t.Context(), "verify", nil)
	if err != nil || out.Snapshots[0].Origin != record.OriginRecorded || out.Snapshots[0].RecordedBy != "n1" {
		t.Errorf("saved snapshot: %+v, %v", out.Snapshots, err)
	}
	j.evidence = nil
	out, err = j.do(t.Context(), "verify", nil)
	if err != nil || out.Snapshots[0].Origin != record.OriginUnproven {
		t.Errorf("snapshot without a record: %+v, %v", out.Snapshots, err)
	}
}

func TestADamagedHashFileDoesNotPreventSnapshots(t *testing.T) {
	t.Parallel()
	var conf config.Config
	conf.Cluster.Name, conf.Paths.State, conf.Backup.Store.Directory = "prod", t.TempDir(), t.TempDir()
	if err := errors.Join(os.Chmod(conf.Backup.Store.Directory, 0o700),
		os.WriteFile(filepath.Join(conf.Paths.State, "manifests.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	j, err := openJob(conf, nil)
	if err != nil {
		t.Fatalf("cannot open a job: %v", err)
	}
	if _, err := j.do(t.Context(), "prune", []string{"no"}); err != nil {
		t.Errorf("prune: %v", err)
	}
	for _, kind := range []string{"list", "verify", "restoreTest"} {
		if _, err := j.do(t.Context(), kind, nil); err == nil || !strings.Contains(err.Error(), "manifests.json") {
			t.Errorf("%s runs without evidence: %v", kind, err)
		}
	}
}
