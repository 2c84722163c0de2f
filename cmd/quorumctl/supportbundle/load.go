// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// etcdLoad describes the load that clients put on etcd, in sentences: watchers, leases, messages, slow requests and the
// size of the database. It reads only etcd's metrics, whose counters begin when etcd starts.
func etcdLoad(metrics func(context.Context) ([]byte, error)) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		text, err := metrics(ctx)
		if err != nil {
			return nil, err
		}
		all, err := sums(text)
		if err != nil {
			return nil, err
		}
		return loadText(all)
	}
}

// loadMetrics returns the prefixes of the metrics that loadText reads.
func loadMetrics() []string {
	return []string{
		"etcd_debugging_mvcc_", "etcd_debugging_lease_", "etcd_debugging_server_lease_", "etcd_mvcc_",
		"etcd_network_client_grpc_", "etcd_server_slow_", "grpc_server_msg_received_total",
		"grpc_server_msg_sent_total",
	}
}

// sums returns the sum of each metric over its labels.
func sums(text []byte) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read etcd's metrics: %w", err)
	}
	all := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			all[name] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return all, nil
}

func loadText(m map[string]float64) ([]byte, error) {
	if _, known := m["etcd_debugging_mvcc_watcher_total"]; !known {
		return nil, errors.New("etcd reports no metrics of its clients")
	}
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	n := func(name string) string { return grouped(m[name]) }
	line("watchers: %s (%s slow) on %s streams; %s events are pending", n("etcd_debugging_mvcc_watcher_total"),
		n("etcd_debugging_mvcc_slow_watcher_total"), n("etcd_debugging_mvcc_watch_stream_total"),
		n("etcd_debugging_mvcc_pending_events_total"))
	granted, revoked := m["etcd_debugging_lease_granted_total"], m["etcd_debugging_lease_revoked_total"]
	line("leases: %s granted and %s revoked or expired since etcd started, a difference of %s",
		grouped(granted), grouped(revoked), grouped(granted-revoked))
	line("leases that this member found expired: %s", n("etcd_debugging_server_lease_expired_total"))
	line("messages: %s received, %s on average; %s sent, %s on average",
		n("grpc_server_msg_received_total"), average(m, "received"), n("grpc_server_msg_sent_total"),
		average(m, "sent"))
	line("slow: %s requests were applied slowly, %s linearizable reads were slow or timed out",
		n("etcd_server_slow_apply_total"), n("etcd_server_slow_read_indexes_total"))
	line("database: %s keys, %s bytes, %s in use", n("etcd_debugging_mvcc_keys_total"),
		n("etcd_mvcc_db_total_size_in_bytes"), n("etcd_mvcc_db_total_size_in_use_in_bytes"))
	return out.Bytes(), nil
}

// average returns the average size of the messages in one direction, as text.
func average(m map[string]float64, direction string) string {
	count := m["grpc_server_msg_"+direction+"_total"]
	if count == 0 {
		return "0 bytes"
	}
	return grouped(m["etcd_network_client_grpc_"+direction+"_bytes_total"]/count) + " bytes"
}

// grouped returns a number, rounded, with commas between its thousands, such as 12,345.
func grouped(v float64) string { return humanize.Commaf(math.Round(v)) }
