// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs || vm

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	callTimeout = 5 * time.Second
	// pollEvery is the resolution of the times in the table.
	pollEvery = 100 * time.Millisecond
	// readyBound limits a disk's qualifying run on a busy machine.
	readyBound = 5 * time.Minute
	// rowsVariable is the environment variable with the directory for the rows. Without it, the test only checks the
	// limits.
	rowsVariable = "QUORUMD_FAULT_ROWS"
)

// expectation is an expected health state with its code, and how long it may take to appear.
type expectation struct {
	state, code string
	within      time.Duration
}

// shipped restores quorumd's default limits if testbed changes them, except for a shorter qualifying run and less free
// space. Many hosts share the machine here, so the agent ignores CPU starvation.
func shipped() map[string]string {
	return map[string]string{
		"mode": "observe", "disk.directInterval": "1s", "disk.walInterval": "10s", "disk.window": "300",
		"disk.qualifySamples": "300", "disk.fsyncClear": "5ms", "disk.fsyncWarm": "10ms", "disk.fsyncSlow": "100ms",
		"disk.stall": "1s", "disk.fail": "30s", "disk.minFree": "64MiB", "disk.starved": "100",
	}
}

// program returns the path of quorumd or quorumctl, as built by make.
func program(t *testing.T, name string) string {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("cannot find %s: %v; run `make build`", name, err)
	}
	return path
}

// start starts quorumd on a host without a member, with etcd's data directory on that disk. If disk is empty, the data
// directory is in the host's own directory. If within is set, that command runs quorumd.
func start(t *testing.T, disk string, set map[string]string, within ...string) *testbed.Host {
	t.Helper()
	dir := t.TempDir()
	ports := testbed.FreePorts(t, 3)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	all := shipped()
	maps.Copy(all, set)
	h, err := testbed.NewHost(testbed.HostOptions{
		Name: "n1", Dir: dir, Disk: disk, Etcd: testbed.Etcd(t, testbed.Small), Shipped: true, Set: all,
		Agent:     append(within, "setpriv", "--pdeathsig", "KILL", program(t, "quorumd"), "run"),
		ClientURL: "http://" + at(0), PeerURL: "http://" + at(1), Metrics: at(2),
		Endpoints: []string{"http://" + at(0)},
	})
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(h.LogPath()); t.Failed() && err == nil {
			t.Logf("the agent's log:\n%s", log)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.KillAgent(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

// queryHealth queries the agent directly, which is cheaper than running quorumctl.
func queryHealth(h *testbed.Host) control.Health {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	s, err := h.Client.Status(ctx)
	if err != nil {
		return control.Health{}
	}
	return s.Health
}

// showHealth runs quorumctl, as an operator does.
func showHealth(t *testing.T, h *testbed.Host) control.Health {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program(t, "quorumctl"), "--socket", h.Options.Socket(), "health", "-o", "json")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("cannot run quorumctl health: %v", err)
	}
	var got control.Health
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("cannot read what quorumctl health shows: %v", err)
	}
	return got
}

func finding(h control.Health, code string) (control.Finding, bool) {
	i := slices.IndexFunc(h.Findings, func(f control.Finding) bool { return f.Code == code })
	if i < 0 {
		return control.Finding{}, false
	}
	return h.Findings[i], true
}

// until waits for a health state and, if code is not empty, for that finding. It polls every pollEvery.
func until(t *testing.T, h *testbed.Host, bound time.Duration, state, code string) {
	t.Helper()
	var next time.Time
	var last control.Health
	defer func() {
		if t.Failed() {
			t.Logf("last seen: %s: %s; %+v", last.State, last.Text, last.Findings)
		}
	}()
	testbed.Eventually(t, bound, fmt.Sprintf("the health state is %s for %q", state, code), func() bool {
		if time.Now().Before(next) {
			return false
		}
		next = time.Now().Add(pollEvery)
		last = queryHealth(h)
		_, found := finding(last, code)
		return last.State == state && (found || code == "")
	})
}

// table collects the rows of a component in the order of its faults.
type table struct {
	mu   sync.Mutex
	rows map[int][]Row
}

// tableOf returns a table. Its rows are saved if all faults of the component are detected in time.
func tableOf(t *testing.T, component string) *table {
	t.Helper()
	made := &table{rows: map[int][]Row{}}
	t.Cleanup(func() {
		dir := os.Getenv(rowsVariable)
		if dir == "" || t.Failed() {
			return
		}
		var all []Row
		for _, i := range slices.Sorted(maps.Keys(made.rows)) {
			all = append(all, made.rows[i]...)
		}
		if err := save(dir, component, all); err != nil {
			t.Error(err)
		}
	})
	return made
}

// add records the output of quorumctl for the i-th fault of the component.
func (b *table) add(t *testing.T, i int, r Row, took time.Duration, h *testbed.Host, code string) {
	t.Helper()
	b.addShown(t, i, r, took, showHealth(t, h), code)
}

// addShown is like add, for output that the test has already read.
func (b *table) addShown(t *testing.T, i int, r Row, took time.Duration, now control.Health, code string) {
	t.Helper()
	r.Seconds, r.State, r.Text = math.Round(10*took.Seconds())/10, now.State, cmp.Or(r.Text, now.Text)
	if code != "" {
		f, found := finding(now, code)
		if !found {
			t.Errorf("%s: quorumctl does not show %s: %+v", r.Fault, code, now)
		}
		r.Code, r.Finding, r.Text = f.Code, f.State, f.Text
		if f.Cause != "" {
			r.Cause = f.Cause + ": " + f.Why
		}
	}
	t.Logf("%s", r.line())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[i] = append(b.rows[i], r)
}

// save writes the rows of a component.
func save(dir, name string, rows []Row) error {
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the rows of %s: %w", name, err)
	}
	return os.WriteFile(rowsFile(dir, name), append(text, '\n'), 0o644)
}

// memory returns a directory on a tmpfs, which is slow only if a rule makes it so.
func memory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "back")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v; run this as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
