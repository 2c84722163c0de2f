// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ReadBack checks that a cluster has every acknowledged write of the load, and returns the revision of the last one.
// prefix is the prefix of the load's keys. The error names lost writes. ReadBack ignores writes that failed.
func (r LoadReport) ReadBack(ctx context.Context, client *clientv3.Client, prefix string) (last int64, err error) {
	answer, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("cannot read the writes back: %w", err)
	}
	there := map[string]bool{}
	for _, kv := range answer.Kvs {
		there[string(kv.Key)] = true
	}
	var lost []error
	for _, w := range r.Writes {
		if w.Acked.IsZero() {
			continue
		}
		last = max(last, w.Revision)
		if !there[w.Key] {
			lost = append(lost, fmt.Errorf("%s was acknowledged at revision %d and is lost", w.Key, w.Revision))
		}
	}
	return last, errors.Join(lost...)
}

// CheckCompacted checks that a watch from the given revision fails because the revision was compacted.
func CheckCompacted(ctx context.Context, client *clientv3.Client, revision int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response := <-client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(revision))
	if !errors.Is(response.Err(), rpctypes.ErrCompacted) {
		return fmt.Errorf("a watcher that resumes at revision %d receives no compaction error: %w", revision,
			cmp.Or(response.Err(), errors.New("it receives changes")))
	}
	return nil
}
