// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

func TestAVersionIsComparedWithTheFixedReleaseOfItsMinorVersion(t *testing.T) {
	t.Parallel()
	for version, text := range map[string]string{
		"3.4.44": "etcd is 3.4.44, which no longer receives fixes, limit 3.5.33",
		"2.9.9":  "etcd is 2.9.9, which no longer receives fixes, limit 3.5.33",
		"3.5.32": "etcd is 3.5.32, limit 3.5.33, which fixes the advisories of 2026-07-23 (GHSA-6vch-q96h-7gc3, " +
			"GHSA-xg4h-6gfc-h4m8)",
		"3.7.0":          "etcd is 3.7.0, limit 3.7.1, which fixes the advisories of 2026-07-23",
		"3.5.33":         "",
		"3.6.14":         "",
		"3.7.1":          "",
		"3.8.0-alpha.0":  "",
		"4.0.0":          "",
		"3.6.16+patched": "",
	} {
		f, said := belowFloor(version)
		if !f.Known || (f.Value > 0) != (text != "") || text != "" && !strings.HasPrefix(said, text) {
			t.Errorf("%s: %+v, %q; want %q", version, f, said, text)
		}
	}
	for _, version := range []string{"", "3.6", "x.y.z", "not decided"} {
		if f, _ := belowFloor(version); f.Known || f.Absent == "" {
			t.Errorf("%q: %+v", version, f)
		}
	}
}

func TestRiskySettingsAreNamedWithTheirHarm(t *testing.T) {
	t.Parallel()
	for flags, text := range map[string]string{
		"unsafe-no-fsync=true":           "unsafe-no-fsync is true: a host crash may lose confirmed writes",
		"auto-tls=1":                     "auto-tls is 1: clients cannot verify the server",
		"peer-auto-tls=true":             "peer-auto-tls is true: any host can connect as a peer",
		"strict-reconfig-check=false":    "strict-reconfig-check is false: etcd accepts membership changes",
		"pre-vote=false":                 "pre-vote is false: a member that rejoins",
		"quota-backend-bytes=-1":         "quota-backend-bytes is -1: etcd supports up to 8 GiB",
		"quota-backend-bytes=8589934593": "quota-backend-bytes is 8589934593: ",
		"max-wals=0":                     "max-wals is 0: old WAL files are never deleted",
		"max-snapshots=0":                "max-snapshots is 0: old snapshots are never deleted",
		"quota-backend-bytes=8589934592": "",
		"quota-backend-bytes=0":          "",
		"snapshot-count=0":               "", // etcd uses its default
		"auto-tls=false":                 "",
		"auto-tls=perhaps":               "",
		"max-wals=5":                     "",
		"something-else=true":            "",
	} {
		name, value, _ := strings.Cut(flags, "=")
		got := EtcdSettings{Known: true, Flags: map[string]string{name: value}}.harms()
		if (len(got) > 0) != (text != "") || text != "" && !strings.HasPrefix(got[0], text) {
			t.Errorf("%s: %q, want %q", flags, got, text)
		}
	}
}

func TestTheRoundTripTimeIsComparedWithTheHeartbeatInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.etcd.FarthestRTT = known(0.3)
	b.etcd.Settings.Flags = map[string]string{"heartbeat-interval": "500"}
	b.each(11*time.Minute, ms)
	if got := textOf(b.result, EtcdHeartbeatShort); got != "round-trip time to the farthest voter 300 ms, 60 % "+
		"of the heartbeat interval of 500 ms, limit 50 %" {
		t.Errorf("got %q", got)
	}
	for value, want := range map[string]time.Duration{
		"": 100 * ms, "250": 250 * ms, "0": 100 * ms, "-3": 100 * ms, "99999999": 100 * ms, "x": 100 * ms,
	} {
		got := EtcdSettings{Flags: map[string]string{"heartbeat-interval": value}}.Heartbeat()
		if got != want {
			t.Errorf("%q is %s", value, got)
		}
	}
}
