// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
)

// Snapshot requests a database snapshot from the member at the client URL endpoint; the member may be a learner. The
// stream is the database file followed by its 32-byte SHA-256. Only ctx bounds it: the caller must detect a stalled
// stream.
func (c *Client) Snapshot(ctx context.Context, endpoint string) (io.ReadCloser, error) {
	conn, err := c.conn(endpoint)
	if err != nil {
		return nil, err
	}
	before := c.token.now()
	snapshot, err := conn.SnapshotWithVersion(ctx) // returns when the first bytes arrive
	if c.opt.Login.User != "" && tokenRejected(err) {
		if err = c.authenticate(ctx, before); err == nil {
			snapshot, err = conn.SnapshotWithVersion(ctx)
		}
	}
	if err != nil {
		return nil, readable(err)
	}
	return snapshot.Snapshot, nil
}
