// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// exchange replaces the snapshot place with the snapshot from, as an attacker with write access to the store can. It
// copies the data unchanged, and change edits the manifest.
func exchange(t *testing.T, d *Directory, from, place Manifest, change func(*Manifest)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.path, from.DataName()))
	must(t, err)
	change(&from)
	manifest, err := from.encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(d.path, place.DataName()), data, 0o600))
	must(t, os.WriteFile(filepath.Join(d.path, place.ManifestName()), manifest, 0o600))
}

// TestReplacedSnapshotIsRefused simulates an attacker who can write only to the store.
func TestReplacedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	rawOf := func(value string) (older, newer []byte) {
		c := etcd(t)
		write(t, c, 20, strings.Repeat(value, 100))
		older, err := io.ReadAll(stream(t, c))
		must(t, err)
		write(t, c, 20, strings.Repeat(value, 100))
		newer, err = io.ReadAll(stream(t, c))
		must(t, err)
		return older, newer
	}
	older, newer := rawOf("value")
	_, forged := rawOf("other") // at the same revision
	d, o := directory(t), options(t)
	take := func(raw []byte, at time.Time) Manifest {
		o.Now = at
		m, err := Save(t.Context(), d, streamOf(raw), o)
		must(t, err)
		return m
	}
	day := o.Now
	first, last := take(older, day.Add(-time.Hour)), take(newer, day)
	other := take(forged, day)
	evidence := Evidence{{Name: last.Name, SHA256: last.SHA256, Saved: day, Host: "n1"}}
	if err := evidence.Refuse(last); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Manifest){
		"an unchanged older one":        func(*Manifest) {},
		"an older one by the new name":  func(m *Manifest) { m.Name = last.Name },
		"an older one with a new time":  func(m *Manifest) { m.Name, m.TakenAt = last.Name, last.TakenAt },
		"an older one of another place": func(m *Manifest) { m.Name, m.Revision = last.Name, last.Revision },
	} {
		exchange(t, d, first, last, change)
		if _, err := ReadManifest(t.Context(), d, last.Name); !errors.Is(err, ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	exchange(t, d, first, last, func(m *Manifest) {
		m.Name, m.TakenAt, m.Revision = last.Name, last.TakenAt, last.Revision
	})
	m, err := ReadManifest(t.Context(), d, last.Name)
	must(t, err)
	if err := Verify(t.Context(), d, m, o); !errors.Is(err, ErrDamaged) {
		t.Errorf("an older database that is called newer: %v", err)
	}
	exchange(t, d, other, last, func(m *Manifest) { m.Name = last.Name })
	m, err = ReadManifest(t.Context(), d, last.Name)
	must(t, err)
	must(t, Verify(t.Context(), d, m, o)) // nothing in the store distinguishes m from the saved snapshot
	if err := evidence.Refuse(m); !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "n1 recorded ") {
		t.Errorf("another one of the same revision: %v", err)
	}
	seen := evidence.Seen(Snapshot{Manifest: m})
	if seen.Origin != record.OriginExchanged || seen.RecordedBy != "n1" {
		t.Errorf("it is listed as %q", seen.Origin)
	}
	if seen = (Evidence{}).Seen(Snapshot{Manifest: m}); seen.Origin != record.OriginUnproven || seen.RecordedAt != nil {
		t.Errorf("without evidence it is listed as %q", seen.Origin)
	}
}

// TestManifestHashMatchesTheStoredObject compares the result of a save with the data read back.
func TestManifestHashMatchesTheStoredObject(t *testing.T) {
	t.Parallel()
	d, o := directory(t), options(t)
	m, err := Save(t.Context(), d, streamOf(rawSnapshot(t)), o)
	must(t, err)
	again, err := ReadManifest(t.Context(), d, m.Name)
	must(t, err)
	evidence := Evidence(record.Manifests{}.Add(record.Manifest{Name: m.Name, SHA256: m.SHA256}).Saved)
	if origin, _ := evidence.Origin(again); origin != record.OriginRecorded {
		t.Errorf("the origin is %s: saved %q, read %q", origin, m.SHA256, again.SHA256)
	}
}
