// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/agent/lock"
)

// Etcd is the agent's interface to the cluster. *Client implements it with a real etcd; the simulation has an
// implementation of its own.
type Etcd interface {
	// SetClusterID sets the cluster that this host belongs to; 0 if unknown. If it is known, the member list of another
	// cluster does not replace the list of this host's cluster.
	SetClusterID(clusterID uint64)
	Members(ctx context.Context) (Membership, error)
	AddLearner(ctx context.Context, peerURL string) (Member, error)
	Promote(ctx context.Context, id uint64, leaderURL string) error
	RemoveLearner(ctx context.Context, id uint64) error
	RemoveMember(ctx context.Context, id uint64) error
	MoveLeader(ctx context.Context, leaderURL string, to uint64) error
	UpdateMember(ctx context.Context, id uint64, peerURL string) error

	// Statuses returns the status of each member, and whether it answers a linearizable read.
	Statuses(ctx context.Context, members []Member) map[uint64]Status
	// Answers returns the status of each member. It needs no quorum.
	Answers(ctx context.Context, members []Member) map[uint64]Status
	ClockOffset(ctx context.Context, wall func() time.Time) (time.Duration, error)
	KnownEndpoints
	// User returns the etcd user of this host; empty if there is none.
	User() string

	Read(ctx context.Context, spans ...Span) (Range, error)
	// ReadAt reads the store of one member, without a quorum.
	ReadAt(ctx context.Context, endpoint string, spans ...Span) (Range, error)
	ReadLast(ctx context.Context, prefix string, limit int64) (Range, error)
	lock.Store
}
