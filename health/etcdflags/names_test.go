// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdflags

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestNamesAreThoseOfAllSourcesOfTheNextStart(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "etcd.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: n1\nclient-transport-security:\n  cert-file: /c\nmax-snapshots: 3\n")
	p := process{
		args:    []string{"--experimental-initial-corrupt-check=true", "--config-file", config},
		environ: []string{"PATH=/bin", "ETCD_NAME=n1", "ETCD_UNSUPPORTED_ARCH=arm64"},
		file:    []string{"ETCD_ENABLE_V2=true"}, changed: true,
	}
	r := p.reader(t)
	r.Environment = map[string]string{"ETCD_DEBUG": "true", "GODEBUG": "x"}
	want := Names{
		Flags: []string{"config-file", "experimental-initial-corrupt-check"},
		Keys:  []string{"max-snapshots", "name"},
		Gates: []string{},
	}
	got, err := r.Names(42)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, differs:\n%s", err, diff)
	}

	args := p.args
	p.args = nil
	r = p.reader(t)
	r.Environment = map[string]string{"ETCD_DEBUG": "true", "GODEBUG": "x"}
	got, err = r.Names(42)
	if want := []string{"ETCD_DEBUG", "ETCD_ENABLE_V2", "ETCD_NAME"}; err != nil || !cmp.Equal(got.Variables, want) {
		t.Errorf("without a configuration file: %v, %v", got.Variables, err)
	}

	p.unreadable = true
	r = p.reader(t)
	r.Unit = []string{"ETCD_ENABLE_V2=false", "ETCD_FEATURE_GATES=B=true, A=false", "LANG=C"}
	got, err = r.Names(42)
	if want := []string{"ETCD_ENABLE_V2", "ETCD_FEATURE_GATES"}; err != nil || !cmp.Equal(got.Variables, want) {
		t.Errorf("of another user's process: %v, %v", got.Variables, err)
	}
	if want := []string{"A=false", "B=true"}; !cmp.Equal(got.Gates, want) {
		t.Errorf("the feature gates that only the unit sets: %q", got.Gates)
	}
	p.args = args
	write("name: n1\nfeature-gates: C=true\n")
	if got, err := r.Names(42); err != nil || len(got.Gates) != 2 {
		t.Errorf("without a configuration file: %q, %v", got.Gates, err)
	}
	if got, err := p.reader(t).Names(42); err != nil || !cmp.Equal(got.Gates, []string{"C=true"}) {
		t.Errorf("in the configuration file: %q, %v", got.Gates, err)
	}
	p.args = append(p.args, "--feature-gates=A=true")
	write("name: [")
	if got, err := p.reader(t).Names(42); err == nil {
		t.Errorf("a wrong configuration file: %v", got)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if got, err := p.reader(t).Names(42); err == nil {
		t.Errorf("no configuration file: %v", got)
	}
	if err := unix.Mkfifo(config, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := p.reader(t).Names(42); err == nil {
		t.Errorf("a pipe as configuration file: %v", got)
	}
	if got, err := p.reader(t).Names(43); err == nil {
		t.Errorf("no process: %v", got)
	}
}
