// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/agent/defrag"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/recovery/rebuild"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/roothelper"
	"github.com/quorumd/quorumd/systemd/runas"
)

// orders returns every order that requires mode manage, as a compromised agent would send it.
func (d *testHost) orders() map[string]func(roothelper.Client) error {
	d.t.Helper()
	vars := d.config().Environment(d.config().SingleMember(), token)
	hooks := roothelper.Hooks{When: "before", ID: "1", Reason: "x"}
	orders := map[string]func(roothelper.Client) error{
		roothelper.SetEnvironment: func(c roothelper.Client) error { return c.SetEnvironment(d.t.Context(), vars) },
		roothelper.HoldBack:       func(c roothelper.Client) error { return c.SetStartGuard(d.t.Context(), true) },
		roothelper.RunHooks:       func(c roothelper.Client) error { return c.RunHooks(d.t.Context(), hooks) },
	}
	for _, verb := range []string{roothelper.Start, roothelper.Stop, roothelper.Restart} {
		orders[verb] = func(c roothelper.Client) error { return c.Drive(d.t.Context(), verb) }
	}
	return orders
}

func TestTheRootHelperChangesNothingUnlessRootsModeIsManage(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	c := roothelper.Client{Socket: testbed.AcceptYes(t, helperIn, d.dir), Agent: mainAgent}
	orders := d.orders()
	path := filepath.Join(d.configs, "quorumd.yaml")
	for what, spoil := range map[string]func(){
		"mode is observe": func() { d.configure("observe", "etcd@x.service") },
		"mode":            func() { d.configure("managed", "etcd@x.service") }, // no such mode
		"cannot trust":    func() { _ = os.Remove(path) },
	} {
		spoil()
		for word, give := range orders {
			if err := give(c); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: the order %s returns %v", what, word, err)
			}
		}
	}
	d.configure("observe", "etcd@x.service")
	if err := c.Drive(t.Context(), roothelper.Stop); !errors.Is(err, systemd.ErrNotPermitted) {
		t.Errorf("the refusal is not ErrNotPermitted: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(d.dir, "lib")); err != nil || len(left) != 0 || d.jobs() != "" {
		t.Errorf("changed anyway: %v, %v, jobs %q", left, err, d.jobs())
	}
	if _, err := os.Stat(filepath.Join(d.dir, "outcomes")); err == nil {
		t.Error("hooks were recorded anyway")
	}

	d.write(d.hold, hoststate.HoldText)
	if err := c.SetStartGuard(t.Context(), false); err != nil {
		t.Errorf("the start guard cannot be released in mode observe: %v", err)
	}
	if _, err := os.Stat(d.hold); err == nil {
		t.Error("the start guard is still there")
	}

	d.configure("manage", "etcd@x.service") // the helper reads the file for each order
	for word, give := range orders {
		if err := give(c); err != nil {
			t.Errorf("mode manage: %s: %v", word, err)
		}
	}
}

func TestTheRunAsServiceOnlyReadsUnlessRootsModeIsManage(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	socket := testbed.AcceptYes(t, runAsIn, d.dir)
	etcd := d.config().Etcd
	kept := filepath.Join(etcd.DataDir, "member", "kept")
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write(kept, "")
	send := func(args ...string) (int, string) {
		out, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		code, err := runas.Send(socket, runas.Request{Agent: mainAgent, Args: args}, in, out, out)
		text, err2 := os.ReadFile(out.Name())
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		return code, string(text)
	}
	changes := [][]string{
		{datadir.MoveAsideCommand, etcd.DataDir, ""},
		{rebuild.RebuildCommand, etcd.DataDir, "", etcd.Binary, "{}"},
		{rebuild.SwapCommand, etcd.DataDir, "", "{}"},
		{defrag.Command, etcd.DataDir, "compact"},
	}
	d.configure("observe", "etcd@x.service")
	for _, args := range changes {
		if code, says := send(args...); code != 1 || !strings.Contains(says, "mode is observe") {
			t.Errorf("%s ends with %d and prints %s", args[0], code, says)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the data was moved anyway: %v", err)
	}
	if code, says := send(datadir.InspectCommand, etcd.DataDir, ""); code != 0 {
		t.Errorf("the data cannot be inspected in mode observe: %s", says)
	}
	if _, says := send(rebuild.ReadCommand, etcd.DataDir, ""); strings.Contains(says, "not allowed") {
		t.Errorf("the log cannot be read in mode observe: %s", says)
	}
	d.configure("manage", "etcd@x.service")
	if code, says := send(changes[0]...); code != 0 {
		t.Errorf("mode manage: %s", says)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("mode manage: the data is still there")
	}
}
