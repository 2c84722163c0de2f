// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// The codes of the checks of the local etcd's flags.
const (
	EtcdSettingsRisky  Code = "ETCD_SETTINGS_RISKY"
	EtcdHeartbeatShort Code = "ETCD_HEARTBEAT_SHORT"
)

// EtcdSettings are the flags of the local etcd that checks use, with their values. The zero value means not read.
type EtcdSettings struct {
	// Known means that the flags were read; otherwise Absent is the reason, as a stable text.
	Known  bool
	Absent string
	Flags  map[string]string
}

func (s EtcdSettings) absent() string {
	if s.Known {
		return ""
	}
	return cmp.Or(s.Absent, notYet)
}

// risk is a flag of etcd that may do harm if it has certain values.
type risk struct {
	flag   string
	risky  func(value string) bool
	harm   string
	remedy string // what to do about it
}

// risks returns the settings to warn about. A snapshot-count of 0 is fine, because etcd then uses its default.
func risks() []risk {
	is := func(want bool) func(string) bool {
		return func(value string) bool {
			got, err := strconv.ParseBool(value)
			return err == nil && got == want
		}
	}
	beyond := func(low, high int64) func(string) bool {
		return func(value string) bool {
			n, err := strconv.ParseInt(value, 10, 64)
			return err == nil && (n < low || n > high)
		}
	}
	const most, unlimited = 8 << 30, 1<<63 - 1
	return []risk{
		{
			"unsafe-no-fsync", is(true), "a host crash may lose confirmed writes",
			"remove it",
		},
		{
			"auto-tls", is(true), "clients cannot verify the server, and the certificate expires after a year",
			"set cert-file and key-file, and remove auto-tls",
		},
		{
			"peer-auto-tls", is(true), "any host can connect as a peer, and the certificate expires after a year",
			"set peer-cert-file and peer-key-file, and remove peer-auto-tls",
		},
		{
			"strict-reconfig-check", is(false), "etcd accepts membership changes that lose quorum",
			"remove it",
		},
		{"pre-vote", is(false), "a member that rejoins forces a leader election", "remove it"},
		{
			"quota-backend-bytes", beyond(0, most),
			"etcd supports up to 8 GiB, and a negative value disables the quota",
			"set it to 8 GiB once the database is smaller than that; without the setting, the quota is 2 GiB, and " +
				"etcd rejects writes beyond it",
		},
		{
			"max-wals", beyond(1, unlimited), "old WAL files are never deleted and fill the disk",
			"remove it",
		},
		{
			"max-snapshots", beyond(1, unlimited), "old snapshots are never deleted and fill the disk",
			"remove it",
		},
	}
}

// checkSettings is the check of harmful flags.
var checkSettings = advice{
	name: "etcd-settings", component: Etcd,
	source:  "etcd.environment, and the command line of the local etcd",
	limit:   Limit{Of: "risky settings", Unit: "settings"},
	code:    EtcdSettingsRisky,
	title:   "etcd runs with risky settings.",
	meaning: "Nothing is broken yet, but each of these settings puts the cluster at risk.",
	remedy: "apply the fix that the finding names for each setting, in etcd.environment or in etcd's unit; make the " +
		"same change on all hosts, and roll it out with 'quorumctl rollout start restart --reason …'",
	measure: lists(0, time.Minute, listed{
		bad:     "a setting is risky",
		well:    "no setting is risky",
		missing: func(in Input) string { return in.Etcd.Settings.absent() },
		look:    func(in Input, _ bool) []string { return in.Etcd.Settings.harms() },
	}),
}

// harms describes the risky settings, each with its effect and its remedy.
func (s EtcdSettings) harms() (texts []string) {
	for _, r := range risks() {
		if value, set := s.Flags[r.flag]; set && r.risky(value) {
			texts = append(texts, fmt.Sprintf("%s is %s: %s (%s)", r.flag, value, r.harm, r.remedy))
		}
	}
	return texts
}

const (
	heartbeatUsed, heartbeatUsedLeave = 50, 40 // percent
	heartbeatFor                      = 10 * time.Minute
	usualHeartbeat                    = 100 // ms; etcd's default
)

// checkHeartbeatSet is the check of etcd's heartbeat interval against the round-trip time to the farthest voter.
var checkHeartbeatSet = advice{
	name: "etcd-heartbeat-set", component: Etcd,
	source: "the status calls to the members, and heartbeat-interval from the check etcd-settings",
	limit: Limit{
		Of: "round-trip time to the farthest voter", Unit: "% of etcd's heartbeat interval", Enter: heartbeatUsed,
		Leave: heartbeatUsedLeave,
	},
	code:  EtcdHeartbeatShort,
	title: "etcd's heartbeat interval is too short for the network latency.",
	meaning: "A heartbeat must arrive well within its interval. Otherwise members miss heartbeats whenever " +
		"the network is a little slower, and elect a new leader.",
	remedy: "find the slow connection with 'quorumctl network'; or set heartbeat-interval to at least two and a half " +
		"times the round-trip time and election-timeout to ten times the interval, and make the same change on all " +
		"hosts",
	measure: func(a advice, at *track) evidence {
		var seen EtcdReading
		return exceeds(heartbeatFor, heartbeatFor,
			func(in Input) Figure {
				seen = in.Etcd
				return seen.heartbeatUsed()
			},
			func(n float64, l Limit) string {
				return fmt.Sprintf("round-trip time to the farthest voter %s, %.0f %% of the heartbeat interval "+
					"of %s, limit %.0f %%", show(time.Duration(seen.FarthestRTT.Value*float64(time.Second))), n,
					show(seen.Settings.Heartbeat()), l.Enter)
			},
		)(a, at)
	},
}

// Heartbeat returns the configured heartbeat interval, or etcd's default if the setting is missing or invalid.
func (s EtcdSettings) Heartbeat() time.Duration {
	if n, err := strconv.ParseUint(s.Flags["heartbeat-interval"], 10, 20); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	return usualHeartbeat * time.Millisecond
}

// heartbeatUsed returns the response time of the farthest voter, in percent of the heartbeat interval.
func (r EtcdReading) heartbeatUsed() Figure {
	if !r.Settings.Known {
		return Figure{Absent: r.Settings.absent()}
	}
	if !r.FarthestRTT.Known {
		return r.FarthestRTT
	}
	return Figure{Value: 100 * r.FarthestRTT.Value / r.Settings.Heartbeat().Seconds(), Known: true}
}
