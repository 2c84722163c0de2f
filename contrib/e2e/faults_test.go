// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// promptly is how long an agent whose disk hangs may take to respond.
const promptly = time.Second

// faulty puts a host's disk on a file system that injects faults on request.
func faulty(t *testing.T, o *testbed.HostOptions, limits map[string]string) *testbed.Mount {
	t.Helper()
	back := filepath.Join(filepath.Dir(o.Dir), o.Name+"-disk")
	if err := os.Mkdir(back, 0o755); err != nil {
		t.Fatal(err)
	}
	m := testbed.MountFaultfs(t, back)
	o.Disk = m.Dir
	maps.Copy(o.Set, limits)
	return m
}

// fivefold returns five times the default limits, and the default of disk.fail, because the machine is busy, and may be
// a virtual machine on a busy host.
func fivefold() map[string]string {
	return map[string]string{
		"disk.fsyncClear": "25ms", "disk.fsyncWarm": "50ms", "disk.fsyncSlow": "500ms", "disk.stall": "5s",
		"disk.fail": "30s",
	}
}

// hanging returns limits for a disk that hangs, on a busy machine. They are too loose to judge its speed.
func hanging() map[string]string {
	return map[string]string{
		"disk.fsyncClear": "200ms", "disk.fsyncWarm": "300ms", "disk.fsyncSlow": "500ms", "disk.stall": "1s",
		"disk.fail": "6s",
	}
}

// rule adds a rule to the disk.
func rule(t *testing.T, m *testbed.Mount, text string) {
	t.Helper()
	if err := m.Rule(text); err != nil {
		t.Fatal(err)
	}
}

// clearRules removes all faults of the disk.
func clearRules(t *testing.T, m *testbed.Mount) {
	t.Helper()
	if err := m.Clear(); err != nil {
		t.Error(err)
	}
}

// hasFinding reports whether the host is in this health state and has this finding.
func (h *host) hasFinding(state, code string) bool {
	s, ok := h.status()
	return ok && s.Health.State == state &&
		slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool { return f.Code == code })
}

func TestAHostWithASlowDiskNeverGetsPastQualifying(t *testing.T) {
	t.Parallel()
	var slow *testbed.Mount
	w := oneVoter(t, 2, func(i int, o *testbed.HostOptions) {
		if i == 2 {
			slow = faulty(t, o, fivefold())
		}
	})
	n2 := w.hosts[1]
	rule(t, slow, "fsync * delay=150ms")
	w.start(n2)
	w.eventually("the disk is found unfit", func() bool {
		return n2.hasFinding("QUALIFYING", "DISK_UNFIT") && n2.waitsFor(policy.NotQualified)
	})
	w.never(5*time.Second, "n2 gets past QUALIFYING, or acts", func() bool {
		s, ok := n2.status()
		return ok && (s.Health.State != "QUALIFYING" || s.Health.Qualified || s.Loop.Steps > 0) || n2.etcdPID() != 0
	})
	explained := me().ctl(n2, "explain")
	explained.check(t, "explain", 0, "NOT_QUALIFIED")
	found := regexp.MustCompile(
		`fsync p99 ([0-9.]+) ms over 30 WAL-like writes, limit 50 ms`).FindStringSubmatch(explained.oneLine())
	if found == nil {
		t.Fatalf("explain does not show the measured number: %s", explained.output)
	}
	if p99, err := strconv.ParseFloat(found[1], 64); err != nil || p99 < 150 || p99 > 5000 {
		t.Errorf("explain reports %s ms for an fsync that takes a little over 150 ms", found[1])
	}
	t.Log(found[0])

	clearRules(t, slow)
	w.verify(1, 1)
}

// TestAVoterWhoseDiskHangs checks how the other hosts and the voter's own agent react, first to a temporary hang and
// then to a permanent one.
func TestAVoterWhoseDiskHangs(t *testing.T) {
	t.Parallel()
	var disk *testbed.Mount
	w := newWorld(t, worldOptions{hosts: 4, voters: 3, standbys: 1, each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			disk = faulty(t, o, hanging())
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	n1, others, spare := w.hosts[0], w.hosts[1:3], w.hosts[3]
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.verify(3, 0)
	w.lead(n1)

	began := time.Now()
	rule(t, disk, "fsync * hang")
	w.eventually("the disk is STALLED", func() bool { return n1.promptStatus().Health.State == "STALLED" })
	first := n1.promptStatus().Health.Disk
	w.eventually("the write in flight grows older", func() bool {
		now := n1.promptStatus().Health.Disk
		return now.InFlightOp != "" && now.InFlightSeconds > first.InFlightSeconds &&
			n1.metric("quorumd_disk_inflight_seconds") > 1
	})
	clearRules(t, disk)
	t.Logf("%.1f s of hanging; in flight for %.1f s at first sight: %s", time.Since(began).Seconds(),
		first.InFlightSeconds, first.InFlightOp)
	w.eventually("the disk is SLOW after the hang has ended", func() bool {
		return n1.hasFinding("SLOW", "DISK_FSYNC_SLOW")
	})
	w.eventually("all are idle", func() bool { return w.isIdle(n1) && w.isIdle(others[0]) && w.isIdle(others[1]) })
	w.lead(n1)

	steps := w.steps(others...)
	rule(t, disk, "fsync * hang")
	w.eventually("another voter leads", func() bool {
		return w.leader(others[0]) != 0 && w.leader(others[0]) != w.memberID(n1) && others[0].writes()
	})
	w.start(spare)
	w.eventually("the spare waits for the voter", func() bool {
		return spare.healthy() && spare.waitsFor(policy.VoterNotLive)
	})
	w.eventually("the disk is FAILED", func() bool { return n1.promptStatus().Health.State == "FAILED" })
	w.eventually("the metrics show the failure and the write in flight", func() bool {
		return n1.metric(`quorumd_health_state{state="FAILED"}`) == 1 && n1.metric("quorumd_disk_inflight_seconds") >= 6
	})
	w.never(3*time.Second, "a host takes a step", func() bool {
		n1.promptStatus()
		return w.steps(others...) != steps || w.steps(spare) > 0 || w.hasRecord(w.keys().Lock()) || !w.has(3, 0)
	})

	clearRules(t, disk)
	w.verify(3, 1) // the voter serves again, so the spare may become the standby
	if !n1.hasFinding("FAILED", "DISK_FAILED") {
		t.Error("a disk that was FAILED is trusted again without an operator")
	}
}

// TestAJoiningHostWhoseDiskHangsForGoodBlocksNoOtherHost makes the disk of the host that holds the lock hang
// permanently.
func TestAJoiningHostWhoseDiskHangsForGoodBlocksNoOtherHost(t *testing.T) {
	t.Parallel()
	var disk *testbed.Mount
	w := oneVoter(t, 3, func(i int, o *testbed.HostOptions) {
		if i == 2 {
			disk = faulty(t, o, hanging())
			o.Set["timing.promoteStable"] = "30s" // how long the learner is watched
		}
	})
	t.Cleanup(func() { clearRules(t, disk) })
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start(n2)
	w.eventually("n2 is followed", func() bool { return n2.waitsFor(policy.LearnerNotSteady) })
	rule(t, disk, "fsync * hang")
	began := time.Now()
	w.start(n3)
	w.eventually("the join is rolled back, and n3 is the standby instead of n2", func() bool {
		n2.promptStatus()
		listed, _ := w.is(n2)
		return !listed && w.has(1, 1) && w.absent(w.keys().Op()) && w.absent(w.keys().Lock())
	})
	t.Logf("%.1f s until the next host had joined", time.Since(began).Seconds())
	if !n1.writes() {
		t.Error("the voter does not write")
	}
	clearRules(t, disk)
	w.verify(1, 1)
}

func TestADiskThatFailsWritesIsFAILEDAndAFullDiskIsReportedAsFull(t *testing.T) {
	t.Parallel()
	var broken, full *testbed.Mount
	w := oneVoter(t, 3, func(i int, o *testbed.HostOptions) {
		switch i {
		case 2:
			broken = faulty(t, o, hanging())
		case 3:
			full = faulty(t, o, hanging())
		}
	})
	n2, n3 := w.hosts[1], w.hosts[2]
	rule(t, broken, "fsync * err=EIO")
	rule(t, full, "write * err=ENOSPC")
	w.start(n2, n3)
	w.eventually("the broken disk is FAILED", func() bool { return n2.hasFinding("FAILED", "DISK_FAILED") })
	w.eventually("the full disk is not found healthy", func() bool {
		return n3.hasFinding("UNKNOWN", "DISK_PROBE_DOWN")
	})
	me().ctl(n2, "health").check(t, "health", 0, "FAILED", "input/output error")
	me().ctl(n3, "health").check(t, "health", 0, "UNKNOWN", "no space left on device")
	w.never(2*time.Second, "one of them joins", func() bool { return w.steps(n2, n3) > 0 || !w.has(1, 0) })

	clearRules(t, broken)
	clearRules(t, full)
	w.eventually("the disk that was broken has passed a whole qualification and is trusted again", func() bool {
		return !n2.hasFinding("FAILED", "DISK_FAILED") && !n2.hasFinding("QUALIFYING", "DISK_QUALIFYING")
	})
	w.verify(1, 1)
}

// promptStatus returns the agent's status, and checks that the agent answers promptly.
func (h *host) promptStatus() control.Status {
	h.w.t.Helper()
	var s control.Status
	h.checkPromptly("the agent", func() (ok bool) { s, ok = h.status(); return ok })
	return s
}

// checkPromptly checks that at least one of three attempts gets an answer in time. A busy machine may delay one or two
// of them; a hung disk would delay all three.
func (h *host) checkPromptly(who string, ask func() bool) {
	h.w.t.Helper()
	var took [3]time.Duration
	for i := range took {
		began := time.Now()
		ok := ask()
		if took[i] = time.Since(began); ok && took[i] < promptly {
			return
		}
	}
	h.w.t.Errorf("%s of %s took longer than %v to answer: %v", who, h.Options.Name, promptly, took)
}

// metric scrapes the agent and returns one value.
func (h *host) metric(series string) float64 {
	h.w.t.Helper()
	var text string
	h.checkPromptly("the listener for scrapes", func() (ok bool) { text, ok = h.fetch("/metrics"); return ok })
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, series+" "); found {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				h.w.t.Fatal(err)
			}
			return number
		}
	}
	h.w.t.Fatalf("%s is not among the metrics", series)
	return 0
}

// steps counts the steps that these agents have taken.
func (w *world) steps(hosts ...*host) uint64 {
	w.t.Helper()
	var n uint64
	for _, h := range hosts {
		s, ok := h.status()
		if !ok {
			w.t.Fatalf("the agent of %s does not answer", h.Options.Name)
		}
		n += s.Loop.Steps
	}
	return n
}

// isIdle reports whether the agent has nothing to do.
func (w *world) isIdle(h *host) bool { return h.waitsFor(policy.Idle) }
