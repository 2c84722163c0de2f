// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestTheLoadOfEtcdIsWrittenInSentences(t *testing.T) {
	t.Parallel()
	const metrics = `etcd_debugging_mvcc_watcher_total 12345
etcd_debugging_mvcc_slow_watcher_total 3000
etcd_debugging_mvcc_watch_stream_total 7
etcd_debugging_mvcc_pending_events_total 0
etcd_debugging_lease_granted_total 1.5e+06
etcd_debugging_lease_revoked_total 500000
etcd_debugging_server_lease_expired_total 20
grpc_server_msg_received_total{grpc_method="Put",grpc_type="unary"} 900
grpc_server_msg_received_total{grpc_method="Range",grpc_type="unary"} 100
etcd_network_client_grpc_received_bytes_total 2.048e+06
etcd_server_slow_apply_total 4
etcd_debugging_mvcc_keys_total 1000
etcd_mvcc_db_total_size_in_bytes 1.048576e+06
`
	const want = `watchers: 12,345 (3,000 slow) on 7 streams; 0 events are pending
leases: 1,500,000 granted and 500,000 revoked or expired since etcd started, a difference of 1,000,000
leases that this member found expired: 20
messages: 1,000 received, 2,048 bytes on average; 0 sent, 0 bytes on average
slow: 4 requests were applied slowly, 0 linearizable reads were slow or timed out
database: 1,000 keys, 1,048,576 bytes, 0 in use
`
	read := func(text string, err error) (string, error) {
		got, err := etcdLoad(func(context.Context) ([]byte, error) { return []byte(text), err })(t.Context())
		return string(got), err
	}
	if got, err := read(metrics, nil); err != nil || got != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, got, want)
	}
	if got, err := read("quorumd_up 1\n", nil); err == nil {
		t.Errorf("of another program: %s", got)
	}
	if got, err := read(metrics+"etcd_mvcc_db_total_size_in_use_in_bytes not-a-number\n", nil); err == nil {
		t.Errorf("not metrics: %s", got)
	}
	if got, err := read("", errors.New("no answer")); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("without an answer: %s, %v", got, err)
	}
}

func TestANumberHasItsThousandsSeparated(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 1234567.4: "1,234,567",
	} {
		if got := grouped(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
