// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// tree writes these files to a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func known(value float64) health.Figure { return health.Figure{Value: value, Known: true} }

const degraded = `Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0](F)
      1047552 blocks super 1.2 [2/1] [_U]

md1 : active raid1 sdd1[1] sdc1[0]
      1047552 blocks super 1.2 [2/2] [UU]

md2 : active raid1 sdf1[1] sde1[0]
      1047552 blocks super 1.2 [2/2] [UU]
      [==>..................]  check = 12.6% (132000/1047552) finish=1.0min speed=13000K/sec

unused devices: <none>
`

func TestMachineStateIsJudged(t *testing.T) {
	t.Parallel()
	well := health.MachineReading{MemoryCorrected: known(0), MemoryUncorrected: known(0), ClockError: known(0.01)}
	sick := health.MachineReading{MemoryCorrected: known(7), MemoryUncorrected: known(2), ClockError: known(16)}
	corrected := well
	corrected.MemoryCorrected = known(7)
	ssd := map[string]string{
		"class/block/sda/queue/rotational": "0\n", "class/block/sda/queue/write_cache": "write back\n",
	}
	rotational := map[string]string{"class/block/sda/queue/rotational": "1\n"}
	for _, c := range []struct {
		name    string
		machine health.MachineReading
		device  string
		sys     map[string]string
		proc    map[string]string
		want    map[string]Finding
	}{
		{"well", well, "sda", ssd, nil, map[string]Finding{
			"clock":         {Result: Pass, Text: "it may be off by 10 ms, limit 1 s"},
			"memory errors": {Result: Pass, Text: "none since boot"},
			"device": {
				Result: Pass,
				Text: "sda is not a rotational disk; write cache: " +
					"write back (needs flushes)",
			},
		}},
		{"sick", sick, "sda", rotational, map[string]string{"mdstat": degraded}, map[string]Finding{
			"clock":         {Result: Warn, Text: "it may be off by 16 s, limit 1 s"},
			"memory errors": {Result: Fail, Text: "2 uncorrected since boot"},
			"device": {
				Result: Warn,
				Text: "the kernel reports sda as a rotational disk; " +
					"write cache: unknown",
			},
			"RAID md0": {Result: Warn, Text: "1 of 2 disks are missing or failed"},
			"RAID md1": {Result: Pass, Text: "active, all 2 disks"},
			"RAID md2": {Result: Warn, Text: "it is checking"},
		}},
		{"corrected", corrected, "", nil, map[string]string{"mdstat": "md0 : nonsense"}, map[string]Finding{
			"clock":         {Result: Pass, Text: "it may be off by 10 ms, limit 1 s"},
			"memory errors": {Result: Warn, Text: "7 since boot, all corrected"},
			"device":        {Result: NotAvailable, Text: "the directory is not on a single block device"},
			"RAID":          {Result: NotAvailable},
		}},
		{"silent", health.NotAvailable[health.MachineReading]("unknown"), "sda", nil, nil, map[string]Finding{
			"clock":         {Result: NotAvailable, Text: "unknown"},
			"memory errors": {Result: NotAvailable, Text: "unknown"},
			"device":        {Result: NotAvailable, Text: "the kernel does not report the type of sda"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Report{Device: c.device}
			r.judgeMachine(kernel{tree(t, c.proc), tree(t, c.sys), c.machine})
			for _, f := range r.Findings {
				want, asked := c.want[f.Name]
				if !asked || f.Result != want.Result || want.Text != "" && f.Text != want.Text ||
					(f.Result == Warn || f.Result == Fail) != (f.Remedy != "") {
					t.Errorf("%+v, want %+v", f, want)
				}
				delete(c.want, f.Name)
			}
			if len(c.want) > 0 {
				t.Errorf("missing findings: %v", c.want)
			}
		})
	}
}
