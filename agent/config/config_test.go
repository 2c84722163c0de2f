// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// valid is the shortest valid configuration.
const valid = `cluster:
  name: prod
  endpoints: [http://192.0.2.1:2379]
etcd:
  clientURL: http://192.0.2.1:2379
  peerURL: http://192.0.2.1:2380
`

func mustParse(t *testing.T, data string) Config {
	t.Helper()
	c, err := parse("quorumd.yaml", []byte(data), n1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestShortestFileGetsEveryDefault(t *testing.T) {
	t.Parallel()
	want := Config{
		Mode: ModeObserve,
		Host: Host{Name: "n1", Role: RoleMember},
		Cluster: Cluster{
			Name: "prod", Voters: 3, Standbys: 1, Endpoints: []string{"http://192.0.2.1:2379"},
			Discovery: Discovery{Interval: 30 * time.Second, Timeout: 10 * time.Second},
		},
		Etcd: Etcd{
			Runner: RunnerSystemd, Unit: "etcd.service", Binary: "/usr/bin/etcd",
			DataDir: "/var/lib/etcd/default", EnvironmentFile: "/var/lib/quorumd-etcd/etcd.env",
			ClientURL: "http://192.0.2.1:2379", PeerURL: "http://192.0.2.1:2380",
			ListenClientURL: "http://192.0.2.1:2379", ListenPeerURL: "http://192.0.2.1:2380",
			LogFile: "/var/log/quorumd/etcd.log", StopTimeout: 30 * time.Second,
		},
		Disk: Disk{
			ProbeDir: "/var/lib/etcd/.quorumd-probe", DirectInterval: time.Second, WALInterval: 10 * time.Second,
			QualifySamples: 3000, QualifyRate: 50,
			FsyncWarm: 10 * time.Millisecond, FsyncSlow: 100 * time.Millisecond, FsyncClear: 5 * time.Millisecond,
			Stall: time.Second, Fail: 30 * time.Second, Starved: 20, MinFree: 1 << 30, Window: 300,
		},
		Timing: Timing{
			Interval: 2 * time.Second, CallTimeout: 2 * time.Second, LockTTL: 30 * time.Second,
			RenewEvery: 5 * time.Second, RenewGiveUp: 15 * time.Second, StepMargin: 5 * time.Second,
			HostRecordTTL: time.Minute, Settle: 6 * time.Second, PromoteStable: time.Minute, PromoteLag: 100,
			SteadyLag: 30 * time.Second, LearnerStall: 5 * time.Minute, LearnerMax: 2 * time.Hour,
			Cooldown: time.Minute, TransferTimeout: 30 * time.Second, TransferInterval: time.Minute,
			ReturnStable: 15 * time.Second,
			ReturnMax:    10 * time.Minute, ReturnGiveUp: 2 * time.Hour, OrphanGrace: 65 * time.Second,
			JoinBackoff:    time.Minute,
			ClockMaxOffset: 5 * time.Second,
		},
		Checks: Checks{Dir: "/etc/quorumd/checks.d", Interval: time.Minute, Timeout: 10 * time.Second},
		Maintenance: Maintenance{
			Hooks: "/etc/quorumd/hooks", HookTimeout: 5 * time.Minute, CommandTimeout: time.Hour,
			Windows: []string{"daily 02:00-05:00"}, Veto: "/etc/quorumd/veto.d",
		},
		Repair:  Repair{PerDay: 2, CleanFor: 10 * time.Minute},
		Space:   Space{NoSpace: NoSpaceAlert, Retain: 10 * time.Minute, Defrag: DefragOff},
		Backup:  Backup{Rate: 64 << 20, Keep: BackupKeep{Count: 7, Age: 168 * time.Hour}},
		Control: Control{Socket: "/run/quorumd/control.sock", Group: "quorumd-admin"},
		Metrics: Metrics{Listen: "127.0.0.1:9379"},
		Paths:   Paths{State: "/var/lib/quorumd", Runtime: "/run/quorumd"},
	}
	if diff := cmp.Diff(want, mustParse(t, valid)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// everyKey sets most keys, each to a value other than its default.
const everyKey = `mode: manage
host: {name: Node_2, id: 0123-ab.c, domain: rack-7, allowSharedHardware: true, role: learner}
cluster:
  name: prod
  id: 0xCDF818194e3a8c32
  voters: 9
  standbys: 0
  endpoints:
    - https://N2.example.org:2379
    - "https://[2001:db8::3]:2379"
  discovery: {srv: example.org, interval: 1m, timeout: 5s}
  allowUnsafeVersion: true
  tls: {ca: /pki/ca.crt, cert: /pki/./c.crt, key: /pki/c.key}
etcd:
  runner: process
  unit: etcd@2.service
  binary: /opt/etcd
  nextBinary: /opt/etcd-next
  dataDir: /data/etcd/
  walDir: /wal/etcd
  environmentFile: /state/etcd.env
  user: quorumd
  passwordFile: /etc/quorumd/./etcd.password
  clientURL: https://n2.example.org:2379
  peerURL: https://n2.example.org:2380
  listenClientURL: https://0.0.0.0:2379
  listenPeerURL: https://[::]:2380
  metricsURL: http://localhost:2381
  tls: {ca: /pki/ca.crt, cert: /pki/s.crt, key: /pki/s.key, peerCA: /pki/pca, peerCert: /pki/p.crt, peerKey: /pki/p.key}
  environment:
    ETCD_QUOTA_BACKEND_BYTES: 8589934592
    ETCD_ENABLE_PPROF: true
    ETCD_LOG_LEVEL: "warn"
  logFile: /log/etcd.log
  stopTimeout: 1m30s
disk:
  directInterval: 500ms
  walInterval: 5s
  qualifySamples: 100
  qualifyRate: 20
  fsyncWarm: 20ms
  fsyncSlow: 200ms
  fsyncClear: 10ms
  stall: 2s
  fail: 1m
  starved: 30
  protectedCache: true
  minFree: 512MiB
  window: 50
timing:
  interval: 250ms
  callTimeout: 1s
  lockTTL: 5s
  renewEvery: 500ms
  renewGiveUp: 2s
  stepMargin: 1s
  hostRecordTTL: 5s
  settle: 5500ms
  promoteStable: 3s
  promoteLag: 10
  steadyLag: 1s
  learnerStall: 30s
  learnerMax: 5m
  cooldown: 0s
  transferTimeout: 7s
  transferInterval: 9s
  returnStable: 2s
  returnMax: 3m
  returnGiveUp: 50m
  orphanGrace: 12s
  joinBackoff: 5s
  clockMaxOffset: 1s
checks: {dir: /c, interval: 2m, timeout: 20s, joins: [raid, check_ntp], leadership: [raid], maintenance: [a-b]}
maintenance:
  hooks: /h
  hookTimeout: 1m
  commandTimeout: 2h
  autoReboot: true
  windows: ["Sat,Sun 22:00-02:00 UTC", daily 12:00-13:00]
  blackouts: [2026-11-27, 12-20..01-06 Europe/Berlin]
  veto: /v
repair: {dead: 15m, unhealthy: 20m, maxPerDay: 3, cleanFor: 1h}
space: {noSpace: remediate, retain: 5m, defrag: windows}
backup:
  every: 6h
  rate: 16MiB
  windows: [daily 20:00-06:00]
  keep: {count: 9, age: 48h}
  store:
    s3:
      endpoint: https://s3.example.com:9000
      bucket: etcd
      prefix: snapshots
      region: eu-west-1
      credentialsFile: /etc/quorumd/s3
      ca: /etc/quorumd/s3.crt
  encryptTo: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]
  identityFile: /etc/quorumd/age.key
fleetlock: {listen: "[::1]:9999"}
proxy: {listen: 127.0.0.2:2400, learnerListen: 127.0.0.2:2401}
control: {socket: /run/q/c.sock, group: wheel}
metrics: {listen: "127.0.0.1:9000", allow: [192.0.2.0/24, "2001:db8::7"], webConfig: /etc/web.yaml}
paths: {state: /state, runtime: /run/q}
`

func TestEveryKeyIsRead(t *testing.T) {
	t.Parallel()
	want := Config{
		Mode: ModeManage,
		Host: Host{Name: "Node_2", ID: "0123-ab.c", Domain: "rack-7", AllowSharedHardware: true, Role: RoleLearner},
		Cluster: Cluster{
			Name: "prod", ID: "cdf818194e3a8c32", Voters: 9, AllowUnsafeVersion: true,
			Endpoints: []string{"https://n2.example.org:2379", "https://[2001:db8::3]:2379"},
			Discovery: Discovery{SRV: "example.org", Interval: time.Minute, Timeout: 5 * time.Second},
			TLS:       &TLS{CA: "/pki/ca.crt", Cert: "/pki/c.crt", Key: "/pki/c.key"},
		},
		Etcd: Etcd{
			Runner: RunnerProcess, Unit: "etcd@2.service", Binary: "/opt/etcd", NextBinary: "/opt/etcd-next",
			DataDir: "/data/etcd", WALDir: "/wal/etcd", EnvironmentFile: "/state/etcd.env", User: "quorumd",
			PasswordFile: "/etc/quorumd/etcd.password",
			ClientURL:    "https://n2.example.org:2379", PeerURL: "https://n2.example.org:2380",
			ListenClientURL: "https://0.0.0.0:2379", ListenPeerURL: "https://[::]:2380",
			MetricsURL: "http://localhost:2381",
			TLS: &EtcdTLS{
				CA: "/pki/ca.crt", Cert: "/pki/s.crt", Key: "/pki/s.key", PeerCA: "/pki/pca", PeerCert: "/pki/p.crt",
				PeerKey: "/pki/p.key",
			},
			Environment: map[string]string{
				"ETCD_QUOTA_BACKEND_BYTES": "8589934592", "ETCD_ENABLE_PPROF": "true",
				"ETCD_LOG_LEVEL": "warn",
			},
			LogFile: "/log/etcd.log", StopTimeout: 90 * time.Second,
		},
		Disk: Disk{
			ProbeDir: "/wal/.quorumd-probe", DirectInterval: 500 * time.Millisecond, WALInterval: 5 * time.Second,
			QualifySamples: 100, QualifyRate: 20,
			FsyncWarm: 20 * time.Millisecond, FsyncSlow: 200 * time.Millisecond, FsyncClear: 10 * time.Millisecond,
			Stall: 2 * time.Second, Fail: time.Minute, Starved: 30, ProtectedCache: true,
			MinFree: 512 << 20, Window: 50,
		},
		Timing: Timing{
			Interval: 250 * time.Millisecond, CallTimeout: time.Second, LockTTL: 5 * time.Second,
			RenewEvery: 500 * time.Millisecond, RenewGiveUp: 2 * time.Second, StepMargin: time.Second,
			HostRecordTTL: 5 * time.Second, Settle: 5500 * time.Millisecond, PromoteStable: 3 * time.Second,
			PromoteLag: 10,
			SteadyLag:  time.Second, LearnerStall: 30 * time.Second, LearnerMax: 5 * time.Minute,
			TransferTimeout: 7 * time.Second, TransferInterval: 9 * time.Second, ReturnStable: 2 * time.Second,
			ReturnMax: 3 * time.Minute, ReturnGiveUp: 50 * time.Minute, OrphanGrace: 12 * time.Second,
			JoinBackoff:    5 * time.Second,
			ClockMaxOffset: time.Second,
		},
		Checks: Checks{
			Dir: "/c", Interval: 2 * time.Minute, Timeout: 20 * time.Second, Joins: []string{"raid", "check_ntp"},
			Leadership: []string{"raid"}, Maintenance: []string{"a-b"},
		},
		Maintenance: Maintenance{
			Hooks: "/h", HookTimeout: time.Minute, CommandTimeout: 2 * time.Hour, AutoReboot: true,
			Windows:   []string{"Sat,Sun 22:00-02:00 UTC", "daily 12:00-13:00"},
			Blackouts: []string{"2026-11-27", "12-20..01-06 Europe/Berlin"}, Veto: "/v",
		},
		Repair: Repair{
			Dead: Grace(15 * time.Minute), Unhealthy: Grace(20 * time.Minute), PerDay: 3, CleanFor: time.Hour,
		},
		Space: Space{NoSpace: NoSpaceRemediate, Retain: 5 * time.Minute, Defrag: DefragWindows},
		Backup: Backup{
			Every: Grace(6 * time.Hour), Windows: []string{"daily 20:00-06:00"},
			Rate: 16 << 20, Keep: BackupKeep{Count: 9, Age: 48 * time.Hour},
			Store: BackupStore{S3: &S3{
				Endpoint: "https://s3.example.com:9000", Bucket: "etcd", Prefix: "snapshots", Region: "eu-west-1",
				CredentialsFile: "/etc/quorumd/s3", CA: "/etc/quorumd/s3.crt",
			}},
			EncryptTo:    []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"},
			IdentityFile: "/etc/quorumd/age.key",
		},
		FleetLock: FleetLock{Listen: "[::1]:9999"},
		Proxy:     Proxy{Listen: "127.0.0.2:2400", LearnerListen: "127.0.0.2:2401"},
		Control:   Control{Socket: "/run/q/c.sock", Group: "wheel"},
		Metrics: Metrics{
			Listen: "127.0.0.1:9000", Allow: []string{"192.0.2.0/24", "2001:db8::7/128"},
			WebConfig: "/etc/web.yaml",
		},
		Paths: Paths{State: "/state", Runtime: "/run/q"},
		Warnings: []string{
			"cluster.voters is 9: every write waits for five disks; 5 or 7 voters are faster and hardly less safe",
			"cluster.allowUnsafeVersion is set: membership is managed with etcd versions that have known faults",
			"maintenance.autoReboot has no effect: it requires mode manage " +
				"and etcd.runner systemd or external",
		},
	}
	if diff := cmp.Diff(want, mustParse(t, everyKey)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestYAMLIsReadBackUnchanged(t *testing.T) {
	t.Parallel()
	for _, data := range []string{valid, everyKey, string(Default())} {
		c := mustParse(t, data)
		written, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, mustParse(t, string(written))); diff != "" {
			t.Errorf("(-before +after):\n%s\nfile:\n%s", diff, written)
		}
	}
}

func TestYAMLMatchesTheHandWrittenFile(t *testing.T) {
	t.Parallel()
	written, err := mustParse(t, everyKey).YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/every-key.golden", string(written))
}

func TestEmptySectionCountsAsMissing(t *testing.T) {
	t.Parallel()
	c := mustParse(t, valid+"host:\ndisk:\n  # window: 5\ntiming: {}\n")
	if diff := cmp.Diff(mustParse(t, valid), c); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}

func TestEmptyTLSSectionMeansTheSystemsCAs(t *testing.T) {
	t.Parallel()
	c := mustParse(t, strings.Replace(strings.ReplaceAll(valid, "http:", "https:"), "etcd:", "  tls: {}\netcd:", 1))
	if diff := cmp.Diff(&TLS{}, c.Cluster.TLS); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseUsesTheMachinesHostName(t *testing.T) {
	t.Parallel()
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("quorumd.yaml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if short, _, _ := strings.Cut(hostname, "."); c.Host.Name != short {
		t.Errorf("host.name is %q on a machine called %q", c.Host.Name, hostname)
	}
}

func TestLoadReadsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quorumd.yaml")
	if err := os.WriteFile(path, []byte(everyKey), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustParse(t, everyKey), c); diff != "" {
		t.Errorf("(-parsed +loaded):\n%s", diff)
	}
}

func TestLoadNamesTheFileInErrors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quorumd.yaml")
	if err := os.WriteFile(path, []byte(valid+"mode: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	errs, ok := errors.AsType[Errors](err)
	want := Errors{{File: path, Line: 7, Key: "mode", Message: `must be observe or manage, not "x"`, Source: "mode: x"}}
	if diff := cmp.Diff(want, errs); !ok || diff != "" {
		t.Errorf("got %v\n(-want +got):\n%s", err, diff)
	}
}

func TestLoadRefusesUnreadableFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "absent.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a device: %v", err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(large); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a file of 10 MiB: %v", err)
	}
}

func TestSizesAreWrittenInTheirLargestUnit(t *testing.T) {
	t.Parallel()
	for size, want := range map[Size]string{
		0: "0B", 1: "1B", 1023: "1023B", 1 << 10: "1KiB", 1536: "1536B",
		3 << 20: "3MiB", 1 << 30: "1GiB", 2 << 40: "2TiB",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d is written %s, want %s", uint64(size), got, want)
		}
	}
}
