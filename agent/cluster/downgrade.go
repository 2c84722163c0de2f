// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// EnableDowngrade enables etcd's downgrade job to a minor version, such as "3.6". It returns an error if etcd rejects
// the version, or if a job is enabled already. The cluster version changes a few seconds later, when every member has
// answered the leader, and then the storage versions of the members.
func (c *Client) EnableDowngrade(ctx context.Context, minor string) error {
	if err := c.downgrade(ctx, clientv3.DowngradeValidate, minor); err != nil {
		return fmt.Errorf("etcd cannot be downgraded to %s: %w", minor, err)
	}
	if err := c.downgrade(ctx, clientv3.DowngradeEnable, minor); err != nil {
		return fmt.Errorf("cannot enable the downgrade to %s: %w", minor, err)
	}
	return nil
}

// CancelDowngrade cancels etcd's downgrade job. It succeeds if none is enabled; only etcd 3.5 reports that as an error.
func (c *Client) CancelDowngrade(ctx context.Context) error {
	err := c.downgrade(ctx, clientv3.DowngradeCancel, "")
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrNoInflightDowngrade) {
		return fmt.Errorf("cannot cancel the downgrade: %w", err)
	}
	return nil
}

func (c *Client) downgrade(ctx context.Context, action clientv3.DowngradeAction, minor string) error {
	_, err := send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.DowngradeResponse, error) {
		return conn.Downgrade(ctx, action, minor)
	})
	return err
}
