// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/disk"
)

// TestTheProbeAcceptsEveryValidConfiguration checks that the configuration and the probe have the same limits.
func TestTheProbeAcceptsEveryValidConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		direct, wal time.Duration
		rate        int
		fits        bool
	}{
		{disk.MinInterval, disk.MinInterval, disk.MaxBurstRate, true},
		{365 * 24 * time.Hour, 365 * 24 * time.Hour, 1, true},
		{disk.MinInterval - 1, time.Second, 1, false},
		{time.Second, disk.MinInterval - 1, 1, false},
		{time.Second, time.Second, disk.MaxBurstRate + 1, false},
		{time.Second, time.Second, 100, false},
	} {
		conf, err := config.Parse("quorumd.yaml",
			[]byte(fmt.Sprintf("cluster: {name: prod, endpoints: ['http://192.0.2.1:2379']}\n"+
				"etcd: {clientURL: 'http://192.0.2.1:2379', peerURL: 'http://192.0.2.1:2380'}\n"+
				"disk: {directInterval: %s, walInterval: %s, qualifyRate: %d}\n", c.direct, c.wal, c.rate)))
		if (err == nil) != c.fits {
			t.Errorf("%+v: the configuration: %v", c, err)
		}
		o := probeOptions(conf, []string{"/bin/true"})
		if err != nil { // an invalid configuration sets no options
			o.DirectInterval, o.WALInterval, o.BurstRate = c.direct, c.wal, c.rate
		}
		o.Dir, o.Target = dir, dir
		if err := o.Check(); (err == nil) != c.fits {
			t.Errorf("%+v: the probe: %v", c, err)
		}
	}
}
