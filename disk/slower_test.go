// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package disk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/disk"
)

func TestTheLatencyIsTheSlowerOfWriteAndSync(t *testing.T) {
	t.Parallel()
	const slow, slower = 80 * time.Millisecond, 160 * time.Millisecond
	for name, c := range map[string]struct{ write, sync time.Duration }{
		"its syncs are slow, as etcd counts them": {slow, slower},
		"its writes have to wait":                 {slower, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := testbed.MountFaultfs(t, t.TempDir())
			for op, longer := range map[string]time.Duration{"write": c.write, "fsync": c.sync} {
				if err := m.Rule(op + " * delay=" + longer.String()); err != nil {
					t.Fatal(err)
				}
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			p, err := disk.StartProbe(disk.Options{
				Command: []string{self, "probe-disk"}, Dir: filepath.Join(m.Dir, "probe"), Target: m.Dir, Exam: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			// A busy machine lengthens some latencies, but not the shortest one.
			shortest, seen := time.Hour, 0
			looks := time.NewTicker(50 * time.Millisecond)
			defer looks.Stop()
			for end := time.Now().Add(20 * time.Second); seen < 5 && time.Now().Before(end); <-looks.C {
				for _, s := range p.Read().Samples {
					if s.Errno == 0 {
						shortest, seen = min(shortest, s.Latency), seen+1
					}
				}
			}
			if shortest < slower || shortest > slow+slower {
				t.Errorf("the shortest of %d samples is %v, want %v to %v", seen, shortest, slower, slow+slower)
			}
		})
	}
}
