// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
)

// Snapshot requests the database from the member at that client URL, which may be a learner. The content is the file,
// followed by its SHA-256 in 32 bytes. It has no timeout but the context: the reader has to watch the progress.
func (c *Client) Snapshot(ctx context.Context, endpoint string) (io.ReadCloser, error) {
	conn, err := c.conn(endpoint)
	if err != nil {
		return nil, err
	}
	before := c.token.now()
	snapshot, err := conn.SnapshotWithVersion(ctx) // it waits for the first bytes
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
