// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/defrag"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/peertls"
	"github.com/quorumd/quorumd/agent/recovery/rebuild"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/roothelper"
	"github.com/quorumd/quorumd/systemd/runas"
)

// testHost is an orderServer with one configuration, in directories of the user who runs the test.
type testHost struct {
	orderServer
	t         *testing.T
	dir       string
	env, hold string
}

const token = "quorumd-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func newTestHost(t *testing.T) *testHost {
	t.Helper()
	d := testHostIn(t.TempDir())
	d.t = t
	for _, sub := range []string{"", "etc", "lib", "data"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(d.dir, sub), 0o755),
			os.Chmod(filepath.Join(d.dir, sub), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	d.configure("manage", "etcd@x.service")
	return d
}

// testHostIn returns the testHost of a directory. The helper and the runas service also call it, in their own
// processes.
func testHostIn(dir string) *testHost {
	d := &testHost{dir: dir, env: filepath.Join(dir, "lib", "etcd.env"), hold: filepath.Join(dir, "lib", "etcd.hold")}
	d.orderServer = orderServer{
		files: rootfile.Beneath(dir, os.Geteuid()), configs: filepath.Join(dir, "etc"),
		outcomes: func(agent string) string { return filepath.Join(dir, "outcomes", agent) },
		drive: func(_ context.Context, unit, verb string) error {
			return writeJob(filepath.Join(dir, "jobs"), unit, verb)
		},
	}
	return d
}

// jobs returns the queued jobs, one per line.
func (d *testHost) jobs() string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "jobs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(text)
}

func (d *testHost) configure(mode, unit string) {
	d.t.Helper()
	d.write(filepath.Join(d.configs, "quorumd.yaml"), `mode: `+mode+`
host: {name: n1}
cluster: {name: prod, voters: 1, standbys: 0, endpoints: [http://n1:2379]}
etcd: {clientURL: http://n1:2379, peerURL: http://n1:2380, listenClientURL: http://127.0.0.1:2379,
  listenPeerURL: http://127.0.0.1:2380, dataDir: `+filepath.Join(d.dir, "data", "etcd")+`,
  unit: `+unit+`, environmentFile: `+d.env+`, environment: {ETCD_LOG_LEVEL: warn}}
`)
}

func (d *testHost) write(path, text string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *testHost) config() config.Config {
	d.t.Helper()
	conf, err := config.Load(filepath.Join(d.configs, "quorumd.yaml"))
	if err != nil {
		d.t.Fatal(err)
	}
	return conf
}

// environment returns the environment that etcd's unit reads.
func (d *testHost) environment() map[string]string {
	d.t.Helper()
	text, err := os.ReadFile(d.env)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	vars, err2 := systemd.ParseEnvironment(string(text))
	if err := errors.Join(err, err2); err != nil {
		d.t.Fatal(err)
	}
	return vars
}

// order carries out the agent's order to write these variables.
func (d *testHost) order(vars map[string]string) error {
	i := roothelper.InitialOf(vars)
	o := roothelper.Request{Word: roothelper.SetEnvironment, Agent: mainAgent, Initial: &i, Group: os.Getegid()}
	if err := o.Check(); err != nil {
		return err
	}
	return d.do(d.t.Context(), o)
}

func TestTheEnvironmentComesFromRootsConfigurationAndTheAgentsInitialCluster(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	joins := d.config().Environment("8e9e05c52164694d=http://n2:2380,n1=http://n1:2380", "")
	for _, vars := range []map[string]string{d.config().Environment(d.config().SingleMember(), token), joins} {
		if err := d.order(vars); err != nil {
			t.Fatal(err)
		}
		if got := d.environment(); roothelper.Digest(got) != roothelper.Digest(vars) ||
			got["ETCD_LOG_LEVEL"] != "warn" {
			t.Errorf("%v\nwant %v", got, vars)
		}
	}
	if info, err := os.Stat(d.env); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for what, change := range map[string]func(map[string]string){
		"has changed":                  func(v map[string]string) { v["LD_PRELOAD"] = "/tmp/x.so" },
		"does not contain this host":   func(v map[string]string) { v["ETCD_INITIAL_CLUSTER"] = "n2=http://n2:2380" },
		"configuration has changed si": func(v map[string]string) { v["ETCD_DATA_DIR"] = "/root" },
	} {
		vars := d.config().Environment(joins["ETCD_INITIAL_CLUSTER"], "")
		change(vars)
		if err := d.order(vars); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := d.environment(); roothelper.Digest(got) != roothelper.Digest(joins) {
		t.Errorf("a refused environment was written: %v", got)
	}
}

func TestStartGuardAndJobsAreForTheUnitThatRootNames(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	for _, word := range []string{
		roothelper.HoldBack, roothelper.HoldBack, roothelper.LetGo, roothelper.LetGo, roothelper.Start,
		roothelper.Stop, roothelper.Restart,
	} {
		if err := d.do(t.Context(), roothelper.Request{Word: word, Agent: mainAgent}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.hold); (err == nil) != (word == roothelper.HoldBack) {
			t.Errorf("after %s: %v", word, err)
		}
	}
	h := roothelper.Hooks{When: "before", ID: "1", Reason: "new kernel"}
	if err := d.do(t.Context(), roothelper.Request{
		Word: roothelper.RunHooks, Agent: mainAgent,
		Hooks: &h,
	}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "outcomes/quorumd/hooks-before.json")); err != nil ||
		!strings.Contains(string(text), "new kernel") {
		t.Errorf("%s, %v", text, err)
	}
	if got := d.jobs(); got != "start etcd@x.service\nstop etcd@x.service\nrestart etcd@x.service\n"+
		"start quorumd-hooks@before.service\n" {
		t.Error(got)
	}
}

func TestAConfigurationWritableByOthersIsRefused(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(d *testHost, path string) error{
		"chmod go-w": func(_ *testHost, path string) error { return os.Chmod(path, 0o664) },
		"is a symbolic link": func(_ *testHost, path string) error {
			return errors.Join(os.Rename(path, path+"x"), os.Symlink(path+"x", path))
		},
		"writable by users other": func(d *testHost, _ string) error { return os.Chmod(d.configs, 0o775) },
		"no such file":            func(_ *testHost, path string) error { return os.Remove(path) },
		"etcd.runner in quorumd.yaml is not systemd": func(d *testHost, _ string) error {
			d.configure("manage", "etcd@x.service, runner: process")
			return nil
		},
	} {
		d := newTestHost(t)
		if err := spoil(d, filepath.Join(d.configs, "quorumd.yaml")); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{roothelper.HoldBack, roothelper.Start} {
			if err := d.do(t.Context(), roothelper.Request{Word: word, Agent: mainAgent}); err == nil ||
				!strings.Contains(err.Error(), what) {
				t.Errorf("%s, %s: %v", what, word, err)
			}
		}
		if jobs := d.jobs(); jobs != "" {
			t.Errorf("%s: %s", what, jobs)
		}
	}
}

func TestTheRunAsServiceUsesOnlyRootsConfigurationAndItsDirectories(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	allowed := func(agent string, args ...string) error {
		return allowRunAs(d.files, d.configs, runas.Request{Agent: agent, Args: args})
	}
	good := []string{datadir.InspectCommand, d.config().Etcd.DataDir, ""}
	if err := allowed("quorumd", good...); err != nil {
		t.Error(err)
	}
	if err := allowed("quorumd", datadir.LogCommand, d.config().Etcd.DataDir, ""); err != nil {
		t.Error(err)
	}
	if err := allowed("quorumd", datadir.LogCommand, "/var/lib/other", ""); err == nil {
		t.Error("reading another log is allowed")
	}
	d.write(filepath.Join(d.dir, "lib", "quorumd.yaml"), "")
	for _, agent := range []string{"", "..", "../lib/quorumd", "/etc/quorumd/quorumd", "quorumd.yaml", "other"} {
		if err := allowed(agent, good...); err == nil {
			t.Errorf("agent %q is accepted", agent)
		}
	}
	if err := allowed("quorumd", datadir.MoveAsideCommand, "/var/lib/other", ""); err == nil {
		t.Error("moving another directory is allowed")
	}
	etcd := d.config().Etcd
	for verb, may := range map[string]bool{"compact": true, "clean": true, "restore": false} {
		if err := allowed("quorumd", defrag.Command, etcd.DataDir, verb); (err == nil) != may {
			t.Errorf("defragmentation, %s: %v", verb, err)
		}
	}
	if err := allowed("quorumd", defrag.Command, "/var/lib/other", "compact"); err == nil {
		t.Error("compacting another database is allowed")
	}
	copies := []string{rebuild.RebuildCommand, etcd.DataDir, etcd.WALDir, etcd.Binary, "{}"}
	if err := allowed("quorumd", copies...); err != nil {
		t.Error(err)
	}
	for at, other := range map[int]string{1: "/var/lib/other", 2: "/var/lib/other", 3: "/bin/sh"} {
		args := slices.Clone(copies)
		args[at] = other
		if err := allowed("quorumd", args...); err == nil {
			t.Errorf("rebuilding with %q is allowed", args)
		}
	}
	if err := allowed("quorumd", peertls.Command, "request", "/etc/ssl/c", "/root/k", "/etc/ssl/ca", "n2"); err == nil {
		t.Error("a certificate that is not configured may be used")
	}
	if err := os.Chmod(d.configs, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := allowed("quorumd", good...); err == nil {
		t.Error("a configuration in a world-writable directory is accepted")
	}
}

func TestAProgramRunsAsRootOnlyIfNoOtherUserCanWriteIt(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	lib, etc := filepath.Join(d.dir, "lib"), filepath.Join(d.dir, "etc")
	program, link := filepath.Join(lib, "drain"), filepath.Join(etc, "10-drain")
	d.write(program, "#!/bin/sh\n")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, link} {
		if err := trustedProgram(d.files, path); err != nil {
			t.Error(err)
		}
	}
	for _, writable := range []string{program, lib, etc} {
		was, err := os.Stat(writable)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(writable, was.Mode()|0o020); err != nil {
			t.Fatal(err)
		}
		if err := trustedProgram(d.files, link); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("a program is trusted although others can write %s: %v", writable, err)
		}
		if err := os.Chmod(writable, was.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStartGuardThatIsAlreadySetNeedsNoOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := hoststate.StartGuardFile{Files: hoststate.HostFiles{}, Path: filepath.Join(dir, "etcd.hold")}
	hold := orderedStartGuard{file, &roothelper.Client{Socket: filepath.Join(dir, "none"), Agent: mainAgent}}
	for _, held := range []bool{false, true} {
		if err := file.SetStartGuard(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if err := hold.SetStartGuard(t.Context(), held); err != nil {
			t.Errorf("start guard already %t: %v", held, err)
		}
		if err := hold.SetStartGuard(t.Context(), !held); err == nil {
			t.Errorf("start guard %t: no order was sent to change it", held)
		}
	}
	if err := errors.Join(os.Remove(file.Path), os.Symlink(file.Path, file.Path)); err != nil { // the link is a loop
		t.Fatal(err)
	}
	for _, held := range []bool{false, true} {
		if err := hold.SetStartGuard(t.Context(), held); err == nil {
			t.Errorf("start guard %t: no order was sent, although the state is unknown", held)
		}
	}
}
