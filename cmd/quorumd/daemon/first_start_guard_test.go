// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeSystemd simulates systemd with one unit of etcd.
type fakeSystemd struct {
	command   []string
	unmounted string // a path whose file system is not mounted
	disabled  bool   // the agent's unit is disabled
	silent    bool   // systemd does not answer
}

func (s fakeSystemd) err() error {
	if s.silent {
		return errors.New("no answer")
	}
	return nil
}

func (s fakeSystemd) Command(context.Context, string) ([]string, error) { return s.command, s.err() }

func (s fakeSystemd) Starts(_ context.Context, unit string) (bool, error) {
	return !s.disabled && unit == "quorumd@events.service", s.err()
}

func (s fakeSystemd) Mounted(_ context.Context, path string) (bool, error) {
	return s.unmounted == "" || !strings.HasPrefix(path+"/", s.unmounted+"/"), s.err()
}

func TestStartGuardPreventsTheStartOnlyBeforeTheFirstDecision(t *testing.T) {
	t.Parallel()
	type scene struct {
		dir   string
		mode  string
		unit  string
		env   map[string]string
		units fakeSystemd
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		change func(t *testing.T, s *scene)
		held   bool
	}{
		"nothing has been decided": {func(*testing.T, *scene) {}, true},
		"the unit uses a different, empty directory": {func(_ *testing.T, s *scene) {
			s.units.command = []string{"etcd", "$ARGS"}
			s.env["ARGS"] = "--data-dir " + s.dir + "/own"
		}, true},
		"etcd's program has another name": {func(_ *testing.T, s *scene) {
			s.units.command = []string{s.dir + "/etcd-3.6"}
		}, true},
		"quorumd only observes": {func(_ *testing.T, s *scene) { s.mode = "observe" }, false},
		"another unit":          {func(_ *testing.T, s *scene) { s.unit = "etcd.service" }, false},
		"the agent is disabled": {func(_ *testing.T, s *scene) { s.units.disabled = true }, false},
		"systemd does not answer": {func(_ *testing.T, s *scene) {
			s.units.silent = true
		}, false},
		"the environment was written": {func(t *testing.T, s *scene) {
			must(t, os.WriteFile(s.dir+"/etcd.env", []byte("ETCD_NAME=n1\n"), 0o600))
		}, false},
		"there is a member": {func(t *testing.T, s *scene) {
			must(t, os.MkdirAll(s.dir+"/store/member", 0o700))
		}, false},
		"there is a member in the directory of the command line": {func(t *testing.T, s *scene) {
			must(t, os.MkdirAll(s.dir+"/own/member", 0o700))
			s.units.command = []string{"etcd", "-data-dir=" + s.dir + "/own"}
		}, false},
		"there is a member in the directory of the unit's environment": {func(t *testing.T, s *scene) {
			must(t, os.MkdirAll(s.dir+"/own/member", 0o700))
			s.env["ETCD_DATA_DIR"] = s.dir + "/own"
		}, false},
		"etcd reads its own configuration file": {func(_ *testing.T, s *scene) {
			s.units.command = []string{"etcd", "--config-file", "/etc/etcd.conf"}
		}, false},
		"a shell starts etcd with a directory that is in no variable": {func(t *testing.T, s *scene) {
			must(t, os.MkdirAll(s.dir+"/own/member", 0o700))
			s.units.command = []string{"/bin/sh", "-c", "exec /usr/bin/etcd --data-dir " + s.dir + "/own"}
		}, false},
		"a file system is not mounted": {func(_ *testing.T, s *scene) { s.units.unmounted = s.dir }, false},
		"a link's file system is not mounted": {func(t *testing.T, s *scene) {
			must(t, os.Mkdir(s.dir+"/disk", 0o755))
			must(t, os.Symlink("disk", s.dir+"/store"))
			s.units.unmounted = s.dir + "/disk"
		}, false},
		"a link leads nowhere": {func(t *testing.T, s *scene) {
			must(t, os.Symlink("gone", s.dir+"/store"))
		}, false},
		"the configuration is refused": {func(_ *testing.T, s *scene) { s.mode = "always" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTestHost(t)
			real, err := filepath.EvalSymlinks(d.dir)
			must(t, err)
			must(t, os.Remove(filepath.Join(d.configs, "quorumd.yaml")))
			s := scene{dir: real, mode: "manage", unit: "etcd@x.service", env: map[string]string{}}
			s.units.command = []string{"/usr/bin/etcd"}
			s.env["ETCD_DATA_DIR"] = real + "/store"
			test.change(t, &s)
			d.write(filepath.Join(d.configs, "events.yaml"), fmt.Sprintf(`mode: %s
cluster: {name: prod, endpoints: ["http://10.0.0.1:2379"]}
etcd:
  unit: etcd@x.service
  dataDir: %s/store
  binary: %[2]s/etcd-3.6
  environmentFile: %[2]s/etcd.env
  clientURL: http://10.0.0.1:2379
  peerURL: http://10.0.0.1:2380
`, s.mode, real))
			var said strings.Builder
			g := startGuard{d.files, d.configs, func(name string) string { return s.env[name] }, s.units, &said}
			if held := g.blocks(t.Context(), s.unit); held != test.held {
				t.Errorf("start prevented: %t, want %t: %s", held, test.held, &said)
			}
			if test.held && !strings.Contains(said.String(), "systemctl disable --now quorumd@events.service") {
				t.Errorf("no remedy in: %s", &said)
			}
		})
	}
}
