// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package faults

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// diskFault is a fault of a disk and how quorumd has to report it.
type diskFault struct {
	name string
	rule string // a rule of contrib/faultfs
	long bool   // takes minutes, or needs an idle machine
	// joining injects the fault from the start, on a host that is about to join, with the full qualifying run.
	joining bool
	wants   expectation   // the expected health state
	early   bool          // the health state must soon be WARM or SLOW, so that a leader transfers leadership
	quiet   time.Duration // without an expected state, how long no finding may appear
}

func diskFaults() []diskFault {
	warm := expectation{"WARM", "DISK_FSYNC_WARM", 3 * time.Minute}
	slow := expectation{"SLOW", "DISK_FSYNC_SLOW", 3 * time.Minute}
	const tail = "fsync * tail=0.01:500ms"
	return []diskFault{
		{name: "every fsync takes 5 ms", rule: "fsync * delay=5ms", long: true, quiet: 2 * time.Minute},
		{name: "every fsync takes 20 ms", rule: "fsync * delay=20ms", wants: warm},
		{name: "every fsync takes 50 ms", rule: "fsync * delay=50ms", long: true, early: true},
		{name: "every fsync takes 200 ms", rule: "fsync * delay=200ms", wants: slow, early: true},
		{name: "every fsync takes 500 ms", rule: "fsync * delay=500ms", long: true, wants: slow, early: true},
		{name: "every fsync takes 900 ms", rule: "fsync * delay=900ms", long: true, wants: slow, early: true},
		{
			name: "one fsync in a hundred takes 500 ms", rule: tail, long: true,
			wants: expectation{"WARM", "DISK_FSYNC_WARM", 20 * time.Minute},
		},
		{
			name: "the same, on a host that is about to join", rule: tail, long: true, joining: true,
			wants: expectation{"QUALIFYING", "DISK_UNFIT", 8 * time.Minute},
		},
		{name: "a write hangs", rule: "fsync * hang", wants: expectation{"STALLED", "DISK_STALLED", time.Minute}},
		{
			name: "a write hangs permanently", rule: "fsync * hang", long: true,
			wants: expectation{"FAILED", "DISK_FAILED", time.Minute},
		},
		{
			name: "every fsync fails with EIO", rule: "fsync * err=EIO",
			wants: expectation{"FAILED", "DISK_FAILED", time.Minute},
		},
		{
			name: "every write fails with EROFS (read-only)", rule: "write * err=EROFS", long: true,
			wants: expectation{"FAILED", "DISK_FAILED", time.Minute},
		},
		{
			name: "every write fails with ENOSPC (disk full)", rule: "write * err=ENOSPC", long: true,
			wants: expectation{"UNKNOWN", "DISK_PROBE_DOWN", time.Minute},
		},
	}
}

// TestDiskFaultsAreFoundInTime runs one host for each fault, several of them in parallel.
func TestDiskFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	made := tableOf(t, "disk")
	for i, f := range diskFaults() {
		if f.long && !patient {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			m := testbed.MountFaultfs(t, memory(t))
			t.Cleanup(func() {
				if err := m.Clear(); err != nil {
					t.Error(err)
				}
			})
			f.run(t, made, i, m)
		})
	}
}

func (f diskFault) run(t *testing.T, made *table, i int, m *testbed.Mount) {
	t.Helper()
	set := map[string]string{}
	if f.joining {
		set["disk.qualifySamples"] = "3000"
		f.inject(t, m)
	}
	h := start(t, m.Dir, set)
	if !f.joining {
		until(t, h, readyBound, "OK", "")
		waitProbeIdle(t, h)
		f.inject(t, m)
	}
	began, row := time.Now(), Row{Fault: f.name, How: "`" + f.rule + "`"}
	if f.early {
		now := waitMustNotLead(t, h)
		made.addShown(t, i, row, time.Since(began), now, now.Findings[0].Code)
		row.Fault = "the same, until the health state is " + f.wants.state
		if now.State == f.wants.state {
			return
		}
	}
	if f.wants.code != "" {
		until(t, h, f.wants.within, f.wants.state, f.wants.code)
		made.add(t, i, row, time.Since(began), h, f.wants.code)
	}
	if f.quiet == 0 {
		return
	}
	testbed.Eventually(t, f.quiet+time.Minute, "the time is over", func() bool {
		if now := queryHealth(h); now.State != "OK" && now.State != "" {
			t.Fatalf("unexpected finding: %s: %s", now.State, now.Text)
		}
		return time.Since(began) >= f.quiet
	})
	made.add(t, i, row, f.quiet, h, "")
}

func (f diskFault) inject(t *testing.T, m *testbed.Mount) {
	t.Helper()
	if err := m.Rule(f.rule); err != nil {
		t.Fatal(err)
	}
}

// waitMustNotLead waits until quorumctl shows a health state with which a host must not lead.
func waitMustNotLead(t *testing.T, h *testbed.Host) (now control.Health) {
	t.Helper()
	var next time.Time
	testbed.Eventually(t, soon, "the health state is WARM or SLOW", func() bool {
		if time.Now().Before(next) {
			return false
		}
		next = time.Now().Add(pollEvery)
		if s := queryHealth(h).State; s != "WARM" && s != "SLOW" {
			return false
		}
		now = showHealth(t, h)
		return len(now.Findings) > 0
	})
	return now
}

// waitProbeIdle waits until the probe has slowed down to its normal rate. During the qualifying run it writes much
// faster.
func waitProbeIdle(t *testing.T, h *testbed.Host) {
	t.Helper()
	const span, idle = 5 * time.Second, 8
	since, before := time.Now(), queryHealth(h).Disk.Samples
	testbed.Eventually(t, readyBound, "the probe has slowed down", func() bool {
		if time.Since(since) < span {
			return false
		}
		now := queryHealth(h).Disk.Samples
		rare := now <= before+idle && now <= mostInAMinute
		since, before = time.Now(), now
		return rare
	})
}
