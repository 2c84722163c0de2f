// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
)

// Snapshot asks the member at that client URL, which may be a learner, for its database. What is read is the file, and
// 32 bytes with its SHA-256 behind it. It lasts as long as it takes: only the context ends it, and whoever reads looks
// for progress.
func (c *Client) Snapshot(ctx context.Context, endpoint string) (io.ReadCloser, error) {
	conn, err := c.conn(endpoint)
	if err != nil {
		return nil, err
	}
	before := c.token.now()
	snapshot, err := conn.SnapshotWithVersion(ctx) // which waits for the first bytes
	if c.opt.Login.User != "" && unknown(err) {
		if err = c.authenticate(ctx, before); err == nil {
			snapshot, err = conn.SnapshotWithVersion(ctx)
		}
	}
	if err != nil {
		return nil, plain(err)
	}
	return snapshot.Snapshot, nil
}
