// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdmetrics

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/quorumd/quorumd/health"
)

const (
	mostBytes   = 8 << 20  // bytes of an answer; etcd 3.6 sends 170 KB
	mostWanted  = 64 << 10 // bytes of the relevant lines of an answer
	mostLine    = 16 << 10
	mostBuckets = 64
	mostCounted = 1 << 53 // up to this number, a float64 represents all integers exactly
	mostPeers   = 64
)

// The metric families that are read.
const (
	serverID      = "etcd_server_id"
	walFsync      = "etcd_disk_wal_fsync_duration_seconds"
	backendCommit = "etcd_disk_backend_commit_duration_seconds"
	activePeers   = "etcd_network_active_peers"
	peerReceived  = "etcd_network_peer_received_bytes_total"
)

// figures returns, by name, where to store the value of each metric family that has a single value.
func figures(to *health.EtcdReading) map[string]*health.Figure {
	return map[string]*health.Figure{
		"etcd_server_has_leader":                    &to.HasLeader,
		"etcd_server_leader_changes_seen_total":     &to.LeaderChanges,
		"etcd_server_proposals_failed_total":        &to.ProposalsFailed,
		"etcd_server_slow_apply_total":              &to.SlowApplies,
		"etcd_server_heartbeat_send_failures_total": &to.HeartbeatFailures,
		"etcd_mvcc_db_total_size_in_bytes":          &to.DBSize,
		"etcd_mvcc_db_total_size_in_use_in_bytes":   &to.DBInUse,
		"etcd_server_quota_backend_bytes":           &to.Quota,
	}
}

// Parse parses an answer of etcd's /metrics. It returns an error if the text cannot be read, is too large, or has an
// invalid line about one of the metrics that are read. A missing metric is no error.
func Parse(from io.Reader) (health.EtcdReading, error) {
	var reading health.EtcdReading
	numbers := figures(&reading)
	lines, err := wanted(from, func(family string) bool {
		return numbers[family] != nil || family == walFsync || family == backendCommit || family == activePeers ||
			family == peerReceived || family == serverID
	})
	if err != nil {
		return health.EtcdReading{}, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(lines))
	if err != nil {
		return health.EtcdReading{}, refusal("etcd's metrics are inconsistent")
	}
	for name, to := range numbers {
		*to = figure(families[name], name)
	}
	reading.WALFsync = histogram(families[walFsync], walFsync)
	reading.BackendCommit = histogram(families[backendCommit], backendCommit)
	reading.Peers = peers(families[activePeers], families[peerReceived])
	if who := families[serverID].GetMetric(); len(who) == 1 {
		reading.Member, _ = peerID(who[0], "server_id")
	}
	return reading, nil
}

// wanted returns the lines of the wanted families, including their TYPE lines.
func wanted(from io.Reader, want func(family string) bool) ([]byte, error) {
	limited := &io.LimitedReader{R: from, N: mostBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, mostLine)
	var kept bytes.Buffer
	for lines.Scan() {
		line := lines.Text()
		if !want(familyOf(line)) {
			continue
		}
		kept.WriteString(line)
		kept.WriteByte('\n')
		if kept.Len() > mostWanted {
			return nil, refusal("etcd's metrics are too large")
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong) || limited.N <= 0:
		return nil, refusal("etcd's metrics are too large")
	case err != nil:
		return nil, err
	}
	return kept.Bytes(), nil
}

// familyOf returns the metric family of a sample or of a TYPE line.
func familyOf(line string) string {
	if rest, typed := strings.CutPrefix(line, "# TYPE "); typed {
		name, _, _ := strings.Cut(rest, " ")
		return name
	}
	name := line[:max(0, strings.IndexAny(line, "{ "))]
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if family, is := strings.CutSuffix(name, part); is {
			return family
		}
	}
	return name
}

// figure returns the value of a family that has a single value.
func figure(family *dto.MetricFamily, name string) health.Figure {
	if len(family.GetMetric()) == 0 {
		return health.Figure{Absent: "etcd does not report " + name}
	}
	m := family.GetMetric()[0]
	value := math.NaN()
	switch {
	case len(family.GetMetric()) > 1:
	case m.GetGauge() != nil:
		value = m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		value = m.GetCounter().GetValue()
	case m.GetUntyped() != nil:
		value = m.GetUntyped().GetValue()
	}
	if !(value >= 0 && value <= mostCounted) { // true for NaN, too
		return health.Figure{Absent: "etcd reports an impossible value: " + name}
	}
	return health.Figure{Value: value, Known: true}
}

// peers returns the members that etcd has been connected to; nil if it reports none, or impossible values. etcd reports
// a member from its first connection on.
func peers(active, received *dto.MetricFamily) map[uint64]health.Peer {
	n, heard := len(active.GetMetric()), len(received.GetMetric())
	if n == 0 || n > mostPeers || heard == 0 || heard > mostPeers {
		return nil
	}
	all := map[uint64]health.Peer{}
	for _, m := range active.GetMetric() {
		id, named := peerID(m, "Remote")
		if value := m.GetGauge().GetValue(); named && value >= 0 && value <= mostCounted {
			all[id] = health.Peer{Active: value > 0}
			continue
		}
		return nil
	}
	for _, m := range received.GetMetric() {
		id, named := peerID(m, "From")
		value := m.GetCounter().GetValue()
		if !named || !(value >= 0 && !math.IsInf(value, 1)) {
			return nil
		}
		all[id] = health.Peer{Received: value, Active: all[id].Active}
	}
	return all
}

// peerID returns the member ID in a label.
func peerID(m *dto.Metric, label string) (uint64, bool) {
	for _, l := range m.GetLabel() {
		if l.GetName() == label {
			id, err := strconv.ParseUint(l.GetValue(), 16, 64)
			return id, err == nil
		}
	}
	return 0, false
}

// histogram returns the histogram of a family that has a single one.
func histogram(family *dto.MetricFamily, name string) health.Histogram {
	if len(family.GetMetric()) == 0 {
		return health.Histogram{Absent: "etcd does not report " + name}
	}
	h, plausible := buckets(family.GetMetric()[0].GetHistogram())
	if !plausible || len(family.GetMetric()) > 1 {
		return health.Histogram{Absent: "etcd reports an impossible histogram: " + name}
	}
	return h
}

// buckets converts cumulative counts to one count per bucket, and returns false if they are impossible.
func buckets(from *dto.Histogram) (health.Histogram, bool) {
	h := health.Histogram{Known: true}
	all, sum := from.GetBucket(), from.GetSampleSum()
	if len(all) < 2 || len(all) > mostBuckets || from.GetSampleCount() > mostCounted || !(sum >= 0) ||
		math.IsInf(sum, 1) || !math.IsInf(all[len(all)-1].GetUpperBound(), 1) {
		return health.Histogram{}, false
	}
	var below uint64
	for _, b := range all {
		n := b.GetCumulativeCount()
		if n < below || b.CumulativeCountFloat != nil {
			return health.Histogram{}, false
		}
		h.Counts, below = append(h.Counts, n-below), n
		h.Bounds = append(h.Bounds, b.GetUpperBound())
	}
	ascending := slices.IsSorted(h.Bounds) && len(slices.Compact(slices.Clone(h.Bounds))) == len(h.Bounds)
	h.Bounds = h.Bounds[:len(h.Bounds)-1]
	return h, ascending && h.Bounds[0] > 0 && below == from.GetSampleCount()
}
