// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/agent/recovery/survivor"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/errand"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/steward"
)

// desk is a steering in directories of the user who runs the test, with one configuration.
type desk struct {
	steering
	t         *testing.T
	dir       string
	env, hold string
	jobs      []string // what was queued
}

const token = "quorumd-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	d := &desk{t: t, dir: dir, env: filepath.Join(dir, "lib", "etcd.env"), hold: filepath.Join(dir, "lib", "etcd.hold")}
	for _, sub := range []string{"", "etc", "lib", "former"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, sub), 0o755),
			os.Chmod(filepath.Join(dir, sub), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	d.steering = steering{
		files: rootfile.Beneath(dir, os.Geteuid()), configs: filepath.Join(dir, "etc"),
		dropIns: filepath.Join(dir, "units"), defaultHold: d.hold,
		outcomes: func(agent string) string { return filepath.Join(dir, "outcomes", agent) },
		drive: func(_ context.Context, unit, verb string) error {
			d.jobs = append(d.jobs, verb+" "+unit)
			return nil
		},
	}
	d.configure("etcd@x.service")
	return d
}

func (d *desk) configure(unit string) {
	d.t.Helper()
	d.write(filepath.Join(d.configs, "quorumd.yaml"), `mode: manage
host: {name: n1}
cluster: {name: prod, voters: 1, standbys: 0, endpoints: [http://n1:2379]}
etcd: {clientURL: http://n1:2379, peerURL: http://n1:2380, listenClientURL: http://127.0.0.1:2379,
  listenPeerURL: http://127.0.0.1:2380,
  unit: `+unit+`, environmentFile: `+d.env+`, environment: {ETCD_LOG_LEVEL: warn}}
`)
}

func (d *desk) write(path, text string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) config() config.Config {
	d.t.Helper()
	conf, err := config.Load(filepath.Join(d.configs, "quorumd.yaml"))
	if err != nil {
		d.t.Fatal(err)
	}
	return conf
}

// environment is what etcd's unit reads.
func (d *desk) environment() map[string]string {
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

// order has these variables written, as the agent would.
func (d *desk) order(vars map[string]string) error {
	i := steward.InitialOf(vars)
	o := steward.Order{Word: steward.SetEnvironment, Agent: mainAgent, Initial: &i}
	if err := o.Check(); err != nil {
		return err
	}
	return d.do(d.t.Context(), o)
}

func TestTheEnvironmentIsMadeFromRootsConfigurationAndTheAgentsInitialCluster(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	joins := d.config().Environment("8e9e05c52164694d=http://n2:2380,n1=http://n1:2380", "")
	for _, vars := range []map[string]string{d.config().Environment(d.config().Alone(), token), joins} {
		if err := d.order(vars); err != nil {
			t.Fatal(err)
		}
		if got := d.environment(); steward.Digest(got) != steward.Digest(vars) || got["ETCD_LOG_LEVEL"] != "warn" {
			t.Errorf("%v\nwant %v", got, vars)
		}
	}
	if info, err := os.Stat(d.env); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for what, change := range map[string]func(map[string]string){
		"has changed":                  func(v map[string]string) { v["LD_PRELOAD"] = "/tmp/x.so" },
		"is not what this host is":     func(v map[string]string) { v["ETCD_INITIAL_CLUSTER"] = "n2=http://n2:2380" },
		"configuration has changed si": func(v map[string]string) { v["ETCD_DATA_DIR"] = "/root" },
	} {
		vars := d.config().Environment(joins["ETCD_INITIAL_CLUSTER"], "")
		change(vars)
		if err := d.order(vars); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := d.environment(); steward.Digest(got) != steward.Digest(joins) {
		t.Errorf("what was refused was written: %v", got)
	}
}

func TestAHoldAndAJobAreThoseOfTheUnitThatRootNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, word := range []string{
		steward.HoldBack, steward.HoldBack, steward.LetGo, steward.LetGo, steward.Start,
		steward.Stop, steward.Restart,
	} {
		if err := d.do(t.Context(), steward.Order{Word: word, Agent: mainAgent}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.hold); (err == nil) != (word == steward.HoldBack) {
			t.Errorf("after %s: %v", word, err)
		}
	}
	h := steward.Hooks{When: "before", ID: "1", Reason: "new kernel"}
	if err := d.do(t.Context(), steward.Order{Word: steward.RunHooks, Agent: mainAgent, Hooks: &h}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "outcomes/quorumd/hooks-before.json")); err != nil ||
		!strings.Contains(string(text), "new kernel") {
		t.Errorf("%s, %v", text, err)
	}
	if got := strings.Join(d.jobs,
		", "); got != "start etcd@x.service, stop etcd@x.service, restart etcd@x.service, start "+
		"quorumd-hooks@before.service" {
		t.Error(got)
	}
}

func TestAConfigurationThatOthersCanWriteIsNotActedUpon(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(d *desk, path string) error{
		"chmod go-w": func(_ *desk, path string) error { return os.Chmod(path, 0o664) },
		"is a symbolic link": func(_ *desk, path string) error {
			return errors.Join(os.Rename(path, path+"x"), os.Symlink(path+"x", path))
		},
		"may write":    func(d *desk, _ string) error { return os.Chmod(d.configs, 0o775) },
		"no such file": func(_ *desk, path string) error { return os.Remove(path) },
		"runner of quorumd is": func(d *desk, _ string) error {
			d.configure("etcd@x.service, runner: process")
			return nil
		},
	} {
		d := newDesk(t)
		if err := spoil(d, filepath.Join(d.configs, "quorumd.yaml")); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{steward.HoldBack, steward.Start} {
			if err := d.do(t.Context(), steward.Order{Word: word, Agent: mainAgent}); err == nil ||
				!strings.Contains(err.Error(), what) {
				t.Errorf("%s, %s: %v", what, word, err)
			}
		}
		if len(d.jobs) != 0 {
			t.Errorf("%s: %v", what, d.jobs)
		}
	}
}

func TestAnErrandNamesAConfigurationOfRootsAndItsDirectoriesOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	allowed := func(agent string, args ...string) error {
		return allowErrand(d.files, d.configs, errand.Request{Agent: agent, Args: args})
	}
	good := []string{datadir.InspectCommand, d.config().Etcd.DataDir, ""}
	if err := allowed("quorumd", good...); err != nil {
		t.Error(err)
	}
	d.write(filepath.Join(d.dir, "lib", "quorumd.yaml"), "")
	for _, agent := range []string{"", "..", "../lib/quorumd", "/etc/quorumd/quorumd", "quorumd.yaml", "other"} {
		if err := allowed(agent, good...); err == nil {
			t.Errorf("%q is taken", agent)
		}
	}
	if err := allowed("quorumd", datadir.MoveAsideCommand, "/var/lib/other", ""); err == nil {
		t.Error("another directory is moved")
	}
	etcd := d.config().Etcd
	copies := []string{survivor.RebuildCommand, etcd.DataDir, etcd.WALDir, etcd.Binary, "{}"}
	if err := allowed("quorumd", copies...); err != nil {
		t.Error(err)
	}
	for at, other := range map[int]string{1: "/var/lib/other", 2: "/var/lib/other", 3: "/bin/sh"} {
		args := slices.Clone(copies)
		args[at] = other
		if err := allowed("quorumd", args...); err == nil {
			t.Errorf("a copy is made with %q", args)
		}
	}
	if err := os.Chmod(d.configs, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := allowed("quorumd", good...); err == nil {
		t.Error("a configuration is taken that anybody can exchange")
	}
}

func TestOfAnEarlierVersionsEnvironmentOnlyTheClusterIsBelieved(t *testing.T) {
	t.Parallel()
	joined := "8e9e05c52164694d=http://n2:2380,n1=http://n1:2380"
	for _, c := range []struct{ what, old, cluster, state, token string }{
		{
			"as quorumd wrote it", "ETCD_INITIAL_CLUSTER=\"" + joined + "\"\nETCD_INITIAL_CLUSTER_STATE=existing\n",
			joined, "existing", "",
		},
		{
			"of a cluster that it made",
			"ETCD_INITIAL_CLUSTER=n1=http://n1:2380\nETCD_INITIAL_CLUSTER_STATE=new\nETCD_INITIAL_CLUSTER_TOKEN=" +
				token + "\n", "n1=http://n1:2380", "new", token,
		},
		{"forged", "LD_PRELOAD=/tmp/x.so\nETCD_DATA_DIR=/root\nETCD_INITIAL_CLUSTER=" + joined +
			"\nETCD_INITIAL_CLUSTER_STATE=existing\n", joined, "existing", ""},
		{
			"of other hosts",
			"ETCD_INITIAL_CLUSTER=n9=http://n9:2380\nETCD_INITIAL_CLUSTER_STATE=new\nETCD_INITIAL_CLUSTER_TOKEN=" +
				token + "\n", "n1=http://n1:2380", "existing", "",
		},
		{"of nothing", "\x00\xff", "n1=http://n1:2380", "existing", ""},
	} {
		d := newDesk(t)
		d.configure(mainUnit)
		former := filepath.Join(d.dir, "former")
		d.write(filepath.Join(former, "etcd.env"), c.old)
		if err := d.move(former); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		want := d.config().Environment(c.cluster, c.token)
		if got := d.environment(); steward.Digest(got) != steward.Digest(want) ||
			got["ETCD_INITIAL_CLUSTER_STATE"] != c.state {
			t.Errorf("%s: %v\nwant %v", c.what, got, want)
		}
		if _, err := os.Stat(d.hold); err == nil {
			t.Errorf("%s: it is held", c.what)
		}
		d.write(filepath.Join(former, "etcd.env"), "ETCD_INITIAL_CLUSTER_STATE=new")
		if err := d.move(former); err != nil || steward.Digest(d.environment()) != steward.Digest(want) {
			t.Errorf("%s: what stood there was replaced, %v", c.what, err)
		}
	}
}

func TestWhatLiesWhereAnEarlierVersionWroteIsNotFollowed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.configure(mainUnit)
	former := filepath.Join(d.dir, "former")
	secret := filepath.Join(d.dir, "secret")
	d.write(secret, "ETCD_INITIAL_CLUSTER=n1=http://n1:2380\n")
	for what, lay := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(secret, path) },
		"a pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a hard link": func(path string) error { return os.Link(secret, path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		for _, name := range []string{"etcd.env", "etcd.hold"} {
			if err := lay(filepath.Join(former, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.move(former); err != nil || d.environment() != nil {
			t.Errorf("%s: %v, %v", what, d.environment(), err)
		}
		for _, name := range []string{"etcd.env", "etcd.hold"} {
			if err := os.Remove(filepath.Join(former, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.write(filepath.Join(former, "etcd.hold"), "held")
	if err := d.move(former); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.hold); err != nil || d.environment() != nil {
		t.Errorf("a hold is not taken over: %v", err)
	}
	if left, _ := os.ReadDir(former); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhatMayStillBeReadAfterAnUpgradeStays(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ unit, dropIn string }{
		"for a unit of another name": {"etcd3.service", ""},
		"with a drop-in of root's":   {mainUnit, "[Service]\nEnvironmentFile=-%s/etcd.env\n"},
	} {
		d := newDesk(t)
		d.configure(c.unit)
		former := filepath.Join(d.dir, "former")
		d.write(filepath.Join(former, "etcd.env"), "ETCD_INITIAL_CLUSTER=n1=http://n1:2380\n")
		if c.dropIn != "" {
			if err := os.MkdirAll(filepath.Join(d.dropIns, "etcd.service.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			d.write(filepath.Join(d.dropIns, "etcd.service.d", "mine.conf"), fmt.Sprintf(c.dropIn, former))
		}
		if err := d.move(former); err != nil || d.environment() == nil {
			t.Errorf("%s: %v, %v", what, d.environment(), err)
		}
		if _, err := os.Stat(filepath.Join(former, "etcd.env")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAHoldIsTakenOverAlsoWhereTheConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	former := filepath.Join(d.dir, "former")
	d.write(filepath.Join(former, "etcd.hold"), "held")
	d.write(filepath.Join(d.configs, "quorumd.yaml"), "modus: manage\n")
	if err := d.move(former); err == nil || !strings.Contains(err.Error(), "did you mean mode?") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(d.hold); err != nil {
		t.Errorf("etcd may make a cluster of its own at the next boot: %v", err)
	}
}

func TestWhoOwnsTheOldDirectoryCannotKeepAnUpgradeFromItsEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.configure(mainUnit)
	former := filepath.Join(d.dir, "former")
	d.write(filepath.Join(former, "etcd.hold"), "held")
	if err := os.MkdirAll(filepath.Join(former, "etcd.env", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.move(former); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.hold); err != nil {
		t.Error(err)
	}
}

func TestAProgramIsRunAsRootOnlyWhereNobodyElseCanLayOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
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
	for _, spoilt := range []string{program, lib, etc} {
		was, err := os.Stat(spoilt)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(spoilt, was.Mode()|0o020); err != nil {
			t.Fatal(err)
		}
		if err := trustedProgram(d.files, link); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("%s can be written by others: %v", spoilt, err)
		}
		if err := os.Chmod(spoilt, was.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHoldThatIsAsItShouldBeCostsNoOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := local.HoldFile{Files: local.HostFiles{}, Path: filepath.Join(dir, "etcd.hold")}
	hold := orderedHold{file, &steward.Client{Socket: filepath.Join(dir, "none"), Agent: mainAgent}}
	for _, held := range []bool{false, true} {
		if err := file.SetHeld(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if err := hold.SetHeld(t.Context(), held); err != nil {
			t.Errorf("held %t already: %v", held, err)
		}
		if err := hold.SetHeld(t.Context(), !held); err == nil {
			t.Errorf("held %t: nobody was asked to change it", held)
		}
	}
	if err := errors.Join(os.Remove(file.Path), os.Symlink(file.Path, file.Path)); err != nil { // it has no end
		t.Fatal(err)
	}
	for _, held := range []bool{false, true} {
		if err := hold.SetHeld(t.Context(), held); err == nil {
			t.Errorf("held %t: nobody was asked to see to it, though it cannot be told how it is", held)
		}
	}
}
