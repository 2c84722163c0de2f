// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestPaceEstimatesTheRemainingTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var p pace
	entries, writes, none := policy.CountEntries, policy.CountWrites, policy.Progress{}
	for _, look := range []struct {
		after  int // seconds
		output string
		how    policy.Progress
		want   string
	}{
		{0, "behind", policy.Progress{Now: 1100, Goal: 100, Unit: entries}, ""},
		{1, "behind", policy.Progress{Now: 1000, Goal: 100, Unit: entries}, ""}, // too soon
		{10, "behind", policy.Progress{Now: 600, Goal: 100, Unit: entries}, "10s"},
		{12, "behind", policy.Progress{Now: 1200, Goal: 100, Unit: entries}, ""}, // went backwards
		{22, "behind", policy.Progress{Now: 1200, Goal: 100, Unit: entries}, ""}, // unchanged
		{32, "behind", policy.Progress{Now: 650, Goal: 100, Unit: entries}, "20s"},
		{36, "behind", policy.Progress{Now: 10, Goal: 40, Unit: writes}, ""}, // a different unit
		{40, "writes", policy.Progress{Now: 10, Goal: 40, Unit: writes}, ""},
		{50, "writes", policy.Progress{Now: 20, Goal: 40, Unit: writes}, "20s"},
		{60, "writes", policy.Progress{Now: 30, Goal: 60, Unit: writes}, "30s"}, // the total grew
		{70, "writes", policy.Progress{Now: 60, Goal: 60, Unit: writes}, "0s"},
		{80, "none", none, ""},
		{90, "writes", policy.Progress{Now: 60, Goal: 90, Unit: writes}, ""},
	} {
		got := ""
		how := &look.how
		if *how == none {
			how = nil
		}
		left, known := p.left(at.Add(time.Duration(look.after)*time.Second), look.output, how)
		if known {
			got = left.Round(time.Second).String()
		}
		if got != look.want {
			t.Errorf("after %d s, %+v: %q, not %q", look.after, look.how, got, look.want)
		}
	}
}

// runWithTerminal runs a command with its stderr on the terminal and its stdout redirected. It returns the exit code,
// the stdout, and what the terminal shows.
func runWithTerminal(t *testing.T, master, terminal *os.File, socket string, args ...string,
) (code int, out, seen string) {
	t.Helper()
	ended := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // ends with an error when the terminal is closed
		ended <- string(text)
	}()
	var answer bytes.Buffer
	code = run(t.Context(), append([]string{"--socket", socket}, args...), &answer, terminal)
	terminal.Close()
	return code, answer.String(), <-ended
}

func TestTerminalShowsTimeUntilAHostJoins(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	d := scene(t, "joining")
	d.onRead = func(look int, s *control.Status) {
		s.Time = s.Time.Add(2 * time.Second)
		behind := 1300 - 200*look
		s.Reasons = []control.Reason{{
			Code: "LEARNER_BEHIND", Text: fmt.Sprintf("%d entries behind the leader, limit 100", behind),
			Progress: &policy.Progress{Now: float64(behind), Goal: 100, Unit: policy.CountEntries},
		}}
		if look == 5 {
			s.Role = policy.RoleVoter
		}
	}
	socket, _ := serve(t, d)
	code, out, seen := runWithTerminal(t, master, terminal, socket, "wait", "--for", "voter")
	if code != exitOK || !strings.HasPrefix(out, "voter: ") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, want := range []string{
		"    0s  joining    LEARNER_BEHIND: 1100 entries behind the leader, limit 100\x1b",
		"    4s  joining    about 6s left: LEARNER_BEHIND: 700 entries behind",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in %q", want, seen)
		}
	}
}

func TestTerminalShowsRecoveryProgress(t *testing.T) {
	t.Parallel()
	for code, exit := range map[policy.ReasonCode]int{policy.Recovered: exitOK, policy.RecoveryGivenUp: exitFault} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			master, terminal := openTerminal(t)
			d := scene(t, "etcd-down")
			plan := control.Recovery{Plan: "abcdefghijkl", Survivor: "n1", Alone: true, New: 0xc2, By: "root"}
			d.onRead = func(look int, s *control.Status) {
				s.Time = s.Time.Add(2 * time.Second)
				s.Recovery = &plan
				s.Reasons = []control.Reason{{
					Code: "RECOVERING", Text: "the data of the new cluster is being built",
					Progress: &policy.Progress{Now: float64(look * 100 << 20), Goal: 1 << 30, Unit: policy.CountBytes},
				}}
				if look == 5 {
					plan.GivenUp = map[policy.ReasonCode]string{policy.RecoveryGivenUp: "root"}[code]
					s.Recovery, s.LastRecovery = nil, &control.RecoveryEnd{Recovery: plan, Ended: s.Time, Code: code}
				}
			}
			socket, _ := serve(t, d)
			got, out, seen := runWithTerminal(t, master, terminal, socket, "recover", "status", "--watch")
			if got != exit || !strings.HasPrefix(out, "plan abcdefghijkl, applied by root, ended on this host at ") {
				t.Errorf("exit %d: %s", got, out)
			}
			for _, want := range []string{
				"    0s  survivor   200 MiB of 1 GiB: RECOVERING: the data of the new cluster i",
				"    4s  survivor   about 12s left, 400 MiB of 1 GiB: RECOVERING: the data of t",
			} {
				if !strings.Contains(seen, want) {
					t.Errorf("%q is missing in %q", want, seen)
				}
			}
		})
	}
}

func TestTerminalShowsSnapshotProgress(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"save", "test-restore"} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			master, terminal := openTerminal(t)
			d := scene(t, "steady")
			d.snapshot = finishedJob()
			d.snapshot.Snapshots = d.snapshot.Snapshots[:1]
			d.onSnapshot = func(look int, j *control.SnapshotJob) {
				switch {
				case look < 18: // longer than paceAfter
					j.Ended, j.Bytes = nil, int64(look)*100<<20
					j.Progress = &policy.Progress{Now: float64(j.Bytes), Goal: 4 << 30, Unit: policy.CountBytes}
				case look < 20: // without a total, as while a temporary etcd reads the snapshot
					j.Ended, j.Bytes, j.Serving = nil, 2<<30, do == "test-restore"
				}
			}
			socket, _ := serve(t, d)
			code, out, seen := runWithTerminal(t, master, terminal, socket, "snapshot", do)
			if code != exitOK || !strings.Contains(out, d.snapshot.Snapshots[0].Name) {
				t.Errorf("exit %d: %s", code, out)
			}
			for _, want := range []string{
				"  200 MiB of 4 GiB: reading and writing\x1b", "s left, 1.66 GiB of 4 GiB: reading and writing\x1b",
				map[string]string{
					"save":         "  2 GiB read and written\x1b",
					"test-restore": "  a temporary etcd reads the snapshot: up to 10m\x1b",
				}[do],
			} {
				if !strings.Contains(seen, want) {
					t.Errorf("%q is missing in %q", want, seen)
				}
			}
		})
	}
}

func TestTerminalShowsTimeLeftOfQualify(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	dir := tempdir.New(t) // a short path, because a long one would be wrapped
	code, out, seen := runWithTerminal(t, master, terminal, "none", "qualify", dir, "--duration", "1s",
		"--writers", "2")
	if code == exitUsage || !strings.HasPrefix(out, dir) {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, want := range []string{
		"  1 writer   about 2s left: 0 s of 1 s, ", "  2 writers  about 1s left: 0 s of 1 s, ",
		"  2 writers  about 0s left: 1 s of 1 s, ",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is missing in %q", want, seen)
		}
	}
}
