// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
)

func TestDurationMayHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "1.5d30m": 36*time.Hour + 30*time.Minute,
		"0d":  0,
		"-1d": -24 * time.Hour, "-1d6h": -30 * time.Hour, "+1d": 24 * time.Hour, "90s": 90 * time.Second,
		"1h30m": 90 * time.Minute, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "2", "2days", "1h2d", "2d1d", "1d-6h", "1d+6h", "--1d", "1 d", "2D", "d2h",
		"1.2.3d", "106752d", "106751d24h", "99999999999999999d", "1dd",
	} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestConfigurationAcceptsDays(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("q.yaml", []byte("cluster:\n  name: prod\n  endpoints: [http://192.0.2.1:2379]\n"+
		"etcd:\n  clientURL: http://192.0.2.1:2379\n  peerURL: http://192.0.2.1:2380\ntiming:\n  learnerMax: 1d12h\n"))
	if err != nil || c.Timing.LearnerMax != 36*time.Hour {
		t.Errorf("%v, %v", c.Timing.LearnerMax, err)
	}
}
