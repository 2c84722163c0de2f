// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// tree writes the kernel's files below a temporary directory.
func tree(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &Reader{
		proc: filepath.Join(dir, "proc"), sys: filepath.Join(dir, "sys"),
		clock: func() (float64, error) { return 0.25, nil },
		now:   func() time.Duration { return time.Hour },
		wall:  func() (float64, error) { return 1e9, nil },
		ipv4:  func() ([]held, error) { return []held{{netip.MustParseAddr("192.0.2.1"), "bond0.7:etcd"}}, nil },
	}
}

func kernel() map[string]string {
	return map[string]string{
		"proc/meminfo": "MemTotal:       16000000 kB\nMemFree:          500000 kB\nMemAvailable:    4000000 kB\n",
		"proc/pressure/memory": "some avg10=9.00 avg60=8.00 avg300=7.00 total=1\n" +
			"full avg10=6.00 avg60=5.25 avg300=4.00 total=1\n",
		"proc/pressure/cpu": "some avg10=9.00 avg60=31.50 avg300=7.00 total=1\n" +
			"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"proc/pressure/io": "some avg10=9.00 avg60=8.00 avg300=7.00 total=1\n" +
			"full avg10=6.00 avg60=2.75 avg300=4.00 total=1\n",
		"proc/stat": "cpu  100 20 300 4000 50 6 7 80 9 1\ncpu0 100 20 300 4000 50 6 7 80 9 1\nintr 12 0 0\n",
		"proc/net/snmp": "Ip: Forwarding DefaultTTL\nIp: 2 64\n" +
			"Tcp: RtoAlgorithm RtoMin MaxConn InSegs OutSegs RetransSegs\nTcp: 1 200 -1 900 1000 12\n",
		"proc/sys/kernel/tainted":                                             "4113\n",
		"proc/sys/kernel/hung_task_detect_count":                              "2\n",
		"proc/sys/kernel/hung_task_timeout_secs":                              "120\n",
		"sys/devices/system/machinecheck/machinecheck0/check_interval":        "12c\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource":     "tsc\n",
		"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count":    "4\n",
		"sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "10\n",
		"sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count":    "6\n",
		"sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count": "0\n",
		"proc/vmstat": "nr_free_pages 12\noom_kill 3\nzone_reclaim 0\n",
		"sys/devices/system/edac/mc/mc0/ce_count": "7\n",
		"sys/devices/system/edac/mc/mc0/ue_count": "0\n",
		"sys/devices/system/edac/mc/mc1/ce_count": "5\n",
		"sys/devices/system/edac/mc/mc1/ue_count": "1\n",
	}
}

func TestEveryFigureIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	known := func(v float64) health.Figure { return health.Figure{Value: v, Known: true} }
	want := health.MachineReading{
		MemoryAvailable: known(25), MemoryStalled: known(5.25), ProcessesKilled: known(3), MemoryCorrected: known(12),
		MemoryUncorrected: known(1), ClockError: known(0.25), Booted: known(1e9), ClockSource: "tsc",
		Throttled: known(8), MachineChecks: known(1), TasksHung: known(2), ProcessorWaited: known(31.5),
		DiskWaited: known(2.75), Segments: health.Part{Known: true, Of: 12, Among: 1000},
		Processor: health.Part{Known: true, Of: 80, Among: 4563}, At: time.Hour,
	}
	if got := tree(t, kernel()).Read(); got != want {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
}

func TestAnUnreadableFigureHasAReasonAndIsNotZero(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		file, text string
		figure     func(health.MachineReading) health.Figure
		why        string
	}{
		"no available memory": {"proc/meminfo", "MemFree: 1 kB\n", memory, "no valid MemAvailable"},
		"more is available than there is": {
			"proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 2 kB\n", memory, "no valid MemAvailable",
		},
		"not a memory at all":        {"proc/meminfo", "\x00\x01", memory, "meminfo"},
		"the kernel has no pressure": {"proc/pressure/memory", "", stalled, "boot with psi=1"},
		"a pressure above 100 %": {
			"proc/pressure/memory", "full avg10=1 avg60=400 avg300=1 total=1\n", stalled, "cannot read",
		},
		"a pressure that is no number": {
			"proc/pressure/memory", "full avg10=1 avg60=NaN avg300=1 total=1\n", stalled, "impossible number",
		},
		"an old kernel":                          {"proc/vmstat", "nr_free_pages 12\n", killed, "older than 4.13"},
		"a negative count":                       {"proc/vmstat", "oom_kill -1\n", killed, "is not a number"},
		"an endless file":                        {"proc/vmstat", strings.Repeat("x", 1<<20), killed, "cannot read"},
		"the kernel has no pressure of the disk": {"proc/pressure/io", "", waited, "boot with psi=1"},
		"a pressure of the disk of half a line":  {"proc/pressure/io", "full avg10=1\n", waited, "cannot read"},
		"a kernel that does not count the hung":  {hungCount, "", hung, "older than 6.13"},
		"a negative number of hung tasks":        {hungCount, "-1", hung, "is not a number"},
		"hung-task detection off":                {hungAfter, "0\n", hung, "hung-task detection is off"},
		"a kernel without hung-task detection":   {hungAfter, "", hung, "hung-task detection is off"},
		"a virtual machine without throttling":   {throttle, "", throttled, "no throttle counters"},
		"a throttle count that is no number":     {throttled1, "warm", throttled, "is not a number"},
		"a CPU without machine checks":           {examiner, "", checks, "no machine-check reporting"},
		"a taint mask that is no number":         {"proc/sys/kernel/tainted", "M", checks, "is not a number"},
		"no TCP":                                 {"proc/net/snmp", "Ip: 1\n", resent, "has no TCP counters"},
		"TCP without its names": {
			"proc/net/snmp", "Tcp: 1 2 3\nTcp: 1 2 3\n", resent, "impossible numbers",
		},
		"TCP with too few numbers": {
			"proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 7\n", resent, "impossible numbers",
		},
		"a processor of an old kernel": {"proc/stat", "cpu 1 2 3 4\n", stolen, "impossible numbers"},
		"another line":                 {"proc/stat", "cpu0 1 2 3 4 5 6 7 8\n", stolen, "impossible numbers"},
		"errors that are no number": {
			"sys/devices/system/edac/mc/mc1/ue_count", "many\n", broken,
			"is not a number",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			files := kernel()
			if files[c.file] = c.text; c.text == "" {
				maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, c.file) })
			}
			got := c.figure(tree(t, files).Read())
			if got.Known || got.Value != 0 || !strings.Contains(got.Absent, c.why) {
				t.Errorf("read %+v, want why: %s", got, c.why)
			}
		})
	}
}

func memory(m health.MachineReading) health.Figure  { return m.MemoryAvailable }
func stalled(m health.MachineReading) health.Figure { return m.MemoryStalled }
func killed(m health.MachineReading) health.Figure  { return m.ProcessesKilled }
func broken(m health.MachineReading) health.Figure  { return m.MemoryUncorrected }

const (
	hungCount  = "proc/sys/kernel/hung_task_detect_count"
	hungAfter  = "proc/sys/kernel/hung_task_timeout_secs"
	throttle   = "sys/devices/system/cpu/cpu"
	throttled1 = throttle + "1/thermal_throttle/core_throttle_count"
	examiner   = "sys/devices/system/machinecheck"
)

func throttled(m health.MachineReading) health.Figure { return m.Throttled }
func checks(m health.MachineReading) health.Figure    { return m.MachineChecks }
func hung(m health.MachineReading) health.Figure      { return m.TasksHung }
func waited(m health.MachineReading) health.Figure    { return m.DiskWaited }
func resent(m health.MachineReading) health.Figure    { return ofPart(m.Segments) }
func stolen(m health.MachineReading) health.Figure    { return ofPart(m.Processor) }

func ofPart(p health.Part) health.Figure {
	return health.Figure{Value: p.Of, Known: p.Known, Absent: p.Absent}
}

func TestAMachineWithoutFiguresIsNotHealthy(t *testing.T) {
	t.Parallel()
	r := tree(t, nil)
	r.clock = func() (float64, error) { return 0, errors.New("not permitted") }
	m := r.Read()
	for _, f := range []health.Figure{
		m.MemoryAvailable, m.MemoryStalled, m.ProcessesKilled, m.MemoryCorrected, m.MemoryUncorrected, m.ClockError,
		m.Throttled, m.MachineChecks, m.TasksHung, m.ProcessorWaited, m.DiskWaited, ofPart(m.Segments),
		ofPart(m.Processor),
	} {
		if f.Known || f.Absent == "" {
			t.Errorf("read %+v", f)
		}
	}
	if m.MemoryUncorrected.Absent != string(noMemoryErrors) {
		t.Errorf("without a driver: %q", m.MemoryUncorrected.Absent)
	}
}

func TestThisMachineReportsItsMemoryAndItsClock(t *testing.T) {
	t.Parallel()
	m := New().Read()
	if f := m.MemoryAvailable; !f.Known || f.Value <= 0 || f.Value > 100 {
		t.Errorf("memory: %+v", f)
	}
	if f := m.ClockError; !f.Known && !strings.Contains(f.Absent, "not permitted") {
		t.Errorf("clock: %+v", f)
	}
	t.Logf("%+v", m)
}

// FuzzRead replaces the text of one file.
func FuzzRead(f *testing.F) {
	for name, text := range kernel() {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		files := kernel()
		if _, known := files[name]; !known {
			return
		}
		files[name] = text
		m := tree(t, files).Read()
		for _, figure := range []health.Figure{
			m.MemoryAvailable, m.MemoryStalled, m.ProcessesKilled, m.MemoryCorrected, m.MemoryUncorrected,
			m.Throttled, m.MachineChecks, m.TasksHung, m.ProcessorWaited, m.DiskWaited, ofPart(m.Segments),
			ofPart(m.Processor),
			{Value: m.Segments.Among, Known: m.Segments.Known, Absent: m.Segments.Absent},
		} {
			if figure.Known == (figure.Absent != "") || figure.Value != figure.Value || figure.Value < 0 {
				t.Errorf("read %+v", figure)
			}
		}
	})
}
