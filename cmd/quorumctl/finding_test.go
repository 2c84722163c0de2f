// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// slowDiskChecks returns the checks of a machine with a slow disk and little memory, but without a memory controller
// that counts errors.
func slowDiskChecks(t *testing.T) control.Checks {
	t.Helper()
	limits := health.DefaultThresholds()
	judge, err := health.New(limits)
	if err != nil {
		t.Fatal(err)
	}
	known := func(v float64) health.Figure { return health.Figure{Value: v, Known: true} }
	machine := health.NotAvailable[health.MachineReading]("there is no memory controller that counts (EDAC)")
	machine.MemoryAvailable, machine.MemoryStalled, machine.ClockError = known(4), known(9), known(0.002)
	var assessment health.Assessment
	now := time.Hour
	for ; now < time.Hour+20*time.Minute; now += time.Second {
		took := 2 * time.Millisecond
		if now > time.Hour+18*time.Minute {
			took = 210 * time.Millisecond
		}
		assessment, _ = judge.Observe(health.Input{
			Now: now, Member: true, Machine: machine,
			Disk: health.DiskReading{
				Samples: []disk.Sample{{Lane: disk.LaneWAL, End: now, Latency: took}}, Alive: true,
				Free: 1 << 40, Total: 1 << 41,
			},
		})
	}
	wall := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	p := publish.New(publish.Options{
		Checks: health.Checks(limits), Wall: func() time.Time { return wall.Add(time.Second) },
	}, record.KeysFor("test"), nil)
	r := &round.Round{Wall: wall, Probed: now}
	r.Assessment = assessment
	p.Show(r)
	return p.Checks()
}

func TestHealthExplainsOneFinding(t *testing.T) {
	t.Parallel()
	d := scene(t, "slow")
	d.checks = slowDiskChecks(t)
	socket, _ := serve(t, d)
	golden(t, "finding.golden", transcript(t, socket,
		"health disk_fsync_slow", "health DISK_STALLED", "health MEMORY_LOW -o yaml", "health MEMORY_PRESSURE",
		"health MEMORY_ERRORS_CORRECTED", "health fsync", "health clock", "health DISK_FSYNC_SLWO",
		"health LOWER_RANKED", "health NONSENSE", "health A B"))
	if r := quorumctl(t, filepath.Join(t.TempDir(), "none"), "health", "MEMORY_LOW"); r.code != exitUnavailable {
		t.Errorf("without quorumd: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestEveryFindingIsExplainedInFull(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.checks = slowDiskChecks(t)
	socket, _ := serve(t, d)
	for _, p := range health.Problems() {
		var doc finding
		r := quorumctl(t, socket, "health", string(p.Code), "-o", "json")
		if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Code == nil ||
			doc.Code.Code != p.Code || doc.Code.Remedy != p.Remedy {
			t.Errorf("%s: exit %d, %v: %s%s", p.Code, r.code, err, r.stdout, r.stderr)
		}
		text := quorumctl(t, socket, "health", string(p.Code), "-o", "wide").stdout
		for _, want := range []string{
			p.Title, p.Meaning, "→ " + p.Remedy, "\nnow: ", "\nmeasured from: ", "\neffect: ", "\nrunbook: ",
			" → " + p.State.String() + " " + string(p.Code) + ": ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", p.Code, want, text)
			}
		}
	}
}

func TestMuteAndUnmute(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.checks = slowDiskChecks(t)
	for _, code := range []string{"MEMORY_LOW", "CLOCK_UNSYNCHRONISED"} {
		d.status.Health.Findings = append(d.status.Health.Findings, control.Finding{
			Code: code, Component: "machine", State: "WARM", Text: "measured by a test",
		})
	}
	d.onRead = func(_ int, s *control.Status) { s.Health.Findings[0].Muted = len(s.Health.Mutes) > 0 }
	socket, _ := serve(t, d)
	got := transcript(t, socket, "check", "health mute memory_low --for 1d --reason 'the backup runs'", "check",
		"health", "status", "health mute MEMORY_LOW", "health mute MEMORY_LWO --reason x",
		"health mute MEMORY_LOW --for 31d --reason x", "health unmute memory_low", "health unmute")
	d.status.Health.Findings = d.status.Health.Findings[:1]
	golden(t, "mute.golden", append(got, transcript(t, socket, "check")...))
	if got := d.requests(); got != "unmute MEMORY_LOW" {
		t.Errorf("asked: %s", got)
	}
}
