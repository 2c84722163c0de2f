// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdflags

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// started returns the settings of an etcd with this environment and this command line.
func started(t testing.TB, environment map[string]string, line string) health.EtcdSettings {
	t.Helper()
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "42"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "42", "cmdline"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	return Reader{Environment: environment, Proc: proc}.Read(42)
}

func TestTheCommandLineOverridesTheEnvironment(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"ETCD_AUTO_TLS": "true", "ETCD_MAX_WALS": "0", "GOGC": "50"}
	got := started(t, environment, strings.Join([]string{
		"/usr/bin/etcd", "--auto-tls=false", "-pre-vote", "--quota-backend-bytes", "-1", "--name", "n1", "stray",
		"--experimental-max-learners=2", "--unsafe-no-fsync", "",
	}, "\x00"))
	want := map[string]string{
		"auto-tls": "false", "max-wals": "0", "pre-vote": "true", "quota-backend-bytes": "-1", "name": "n1",
		"max-learners": "2", "unsafe-no-fsync": "true",
	}
	if !got.Known || !maps.Equal(got.Flags, want) {
		t.Errorf("got %+v", got)
	}
}

func TestUnreadableSettingsAreUnknown(t *testing.T) {
	t.Parallel()
	for what, got := range map[string]health.EtcdSettings{
		"gone":            Reader{Proc: t.TempDir()}.Read(42),
		"none":            Reader{}.Read(0),
		"a kernel thread": started(t, nil, ""),
		"its own file":    started(t, nil, "etcd\x00--config-file\x00/etc/etcd.yaml\x00"),
	} {
		if got.Known || got.Absent == "" || len(got.Flags) > 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestReadsTheCommandLineOfThisProcess(t *testing.T) {
	t.Parallel()
	if got := (Reader{}).Read(os.Getpid()); !got.Known || len(got.Flags) == 0 {
		t.Errorf("got %+v", got)
	}
}

func FuzzACommandLine(f *testing.F) {
	f.Add("--a\x00--b=\x00-\x00--\x00---c\x00=\x00-1")
	f.Fuzz(func(t *testing.T, line string) {
		flags := map[string]string{}
		parse(flags, strings.Split(line, "\x00"), plain)
		for name, value := range flags {
			if len(name) > mostBytes || len(value) > mostBytes || strings.Contains(name, "=") {
				t.Errorf("%q is %q", name, value)
			}
		}
		if len(flags) > mostFlags {
			t.Errorf("%d flags", len(flags))
		}
	})
}
