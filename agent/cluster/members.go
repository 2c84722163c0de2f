// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNotListed means that the member of a membership change is not in the member list.
var ErrNotListed = errors.New("the member is not in the member list")

// Member is an entry of the member list.
type Member struct {
	ID         uint64
	Name       string // empty until the member has first started
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
}

// Membership is the current member list.
type Membership struct {
	ClusterID uint64
	Members   []Member
}

// ByPeerURL returns the member with the given peer URL.
func (m Membership) ByPeerURL(url string) (Member, bool) {
	i := slices.IndexFunc(m.Members, func(m Member) bool { return slices.Contains(m.PeerURLs, url) })
	if i < 0 {
		return Member{}, false
	}
	return m.Members[i], true
}

// Recognize returns a host's member: the one with the ID that the host has reported or recorded, or else the one with
// its peer URL. A member keeps its ID when its peer URL changes.
func (m Membership) Recognize(id uint64, url string) (Member, bool) {
	if own, listed := m.ByID(id); listed && id != 0 {
		return own, true
	}
	return m.ByPeerURL(url)
}

// ByID returns the member with the given ID.
func (m Membership) ByID(id uint64) (Member, bool) {
	i := slices.IndexFunc(m.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return m.Members[i], true
}

// Members reads the member list, linearizably, and uses its voters as endpoints from now on. It returns the list of
// another cluster only if no member of this host's cluster answered; see SetClusterID.
func (c *Client) Members(ctx context.Context) (Membership, error) {
	answer, err := askOf(ctx, c, c.listEndpoints(), func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.MemberListResponse, error) {
		return conn.MemberList(ctx)
	}, func(answer *clientv3.MemberListResponse) bool { return !c.isForeign(answer.Header.GetClusterId()) })
	if err != nil {
		return Membership{}, err
	}
	list := Membership{ClusterID: answer.Header.GetClusterId()}
	var urls []string
	for _, m := range answer.Members {
		list.Members = append(list.Members, Member{
			ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner,
		})
		if !m.IsLearner {
			urls = append(urls, m.ClientURLs...)
		}
	}
	slices.SortFunc(list.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	c.useVoters(list, urls)
	return list, nil
}

// ownMembers reads the member list, and returns an error if it is another cluster's.
func (c *Client) ownMembers(ctx context.Context) (Membership, error) {
	list, err := c.Members(ctx)
	if err == nil && c.isForeign(list.ClusterID) {
		return Membership{}, ErrForeignCluster
	}
	return list, err
}

// Status is a member's own status, and whether it serves.
type Status struct {
	MemberID     uint64
	ClusterID    uint64
	Leader       uint64 // 0 if the member has no leader
	Term         uint64
	Index        uint64 // Raft log index
	Applied      uint64
	Learner      bool
	Version      string
	Storage      string // the version of its database's layout, such as "3.6.0"; empty before etcd 3.6
	Downgrade    string // the target of the cluster's downgrade job, such as "3.6.0"; empty if none is enabled
	DBSize       int64  // size of the member's database, in bytes
	DBInUse      int64
	DBQuota      int64 // 0 before etcd 3.6
	Errors       []string
	Linearizable bool          // the member answered a linearizable read, so it has a quorum
	RTT          time.Duration // round-trip time of the status call
	Err          error         // why there is no answer; all other fields are then zero
}

// Statuses queries several members concurrently at their own client URLs: for their status and, if they are voters, for
// a linearizable read. It takes at most the time of two calls.
func (c *Client) Statuses(ctx context.Context, members []Member) map[uint64]Status {
	return askAll(ctx, members, c.status)
}

// Answers queries members only for their status, which needs no quorum: each member answers without the others, even
// while reads time out. It takes at most the time of one call.
func (c *Client) Answers(ctx context.Context, members []Member) map[uint64]Status {
	return askAll(ctx, members, c.answer)
}

func askAll(ctx context.Context, members []Member, ask func(context.Context, Member) Status) map[uint64]Status {
	var wait sync.WaitGroup
	answers := make([]Status, len(members))
	for i, m := range members {
		if len(m.ClientURLs) == 0 {
			answers[i].Err = errors.New("it has not published its client URL: it has never started")
			continue
		}
		wait.Go(func() { answers[i] = ask(ctx, m) })
	}
	wait.Wait()
	out := map[uint64]Status{}
	for i, m := range members {
		out[m.ID] = answers[i]
	}
	return out
}

func (c *Client) answer(ctx context.Context, m Member) Status {
	began := time.Now()
	s, err := once(ctx, c, m.ClientURLs[0], func(ctx context.Context,
		conn *clientv3.Client,
	) (*pb.StatusResponse, error) {
		// the etcd client's own Status would open a connection for every call
		answer, err := pb.NewMaintenanceClient(conn.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		return answer, clientv3.ContextError(ctx, err)
	})
	if err != nil {
		return Status{Err: err}
	}
	target := ""
	if s.DowngradeInfo.GetEnabled() {
		target = cmp.Or(s.DowngradeInfo.GetTargetVersion(), "unknown")
	}
	return Status{
		Storage: s.StorageVersion, Downgrade: target,
		MemberID: s.Header.GetMemberId(), ClusterID: s.Header.GetClusterId(), Leader: s.Leader, Term: s.RaftTerm,
		Index: s.RaftIndex, Applied: s.RaftAppliedIndex, Learner: s.IsLearner, Version: s.Version,
		DBSize: s.DbSize, DBInUse: s.DbSizeInUse, DBQuota: s.DbSizeQuota, Errors: s.Errors, RTT: time.Since(began),
	}
}

func (c *Client) status(ctx context.Context, m Member) Status {
	out := c.answer(ctx, m)
	if out.Err != nil || m.Learner || out.Leader == 0 { // without a leader there is no quorum to query
		return out
	}
	_, err := once(ctx, c, m.ClientURLs[0], func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.GetResponse, error) {
		return conn.Get(ctx, c.probeKey(), clientv3.WithCountOnly())
	})
	out.Linearizable = err == nil
	return out
}

// AddLearner adds a learner with the given peer URL, or returns the member that already has the URL.
func (c *Client) AddLearner(ctx context.Context, peerURL string) (Member, error) {
	list, err := c.ownMembers(ctx)
	if err != nil {
		return Member{}, err
	}
	if m, ok := list.ByPeerURL(peerURL); ok {
		return m, nil
	}
	_, addErr := send(ctx, c, func(ctx context.Context, conn *clientv3.Client) (*clientv3.MemberAddResponse, error) {
		return conn.MemberAddAsLearner(ctx, []string{peerURL})
	})
	list, err = c.ownMembers(ctx)
	if err != nil {
		return Member{}, joinErrors(addErr, err)
	}
	m, ok := list.ByPeerURL(peerURL)
	switch {
	case ok:
		return m, nil
	case addErr != nil:
		return Member{}, fmt.Errorf("cannot add a learner: %w", addErr)
	}
	return Member{}, ErrNotListed
}

// Promote makes a learner a voter. It calls the leader, the only member that tracks the learner's progress. It succeeds
// if the member is a voter already.
func (c *Client) Promote(ctx context.Context, id uint64, leaderURL string) error {
	_, promoteErr := once(ctx, c, leaderURL, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.MemberPromoteResponse, error) {
		return conn.MemberPromote(ctx, id)
	})
	list, err := c.ownMembers(ctx)
	if err != nil {
		return joinErrors(promoteErr, err)
	}
	m, ok := list.ByID(id)
	switch {
	case ok && !m.Learner:
		return nil
	case !ok:
		return joinErrors(ErrNotListed, promoteErr)
	case promoteErr != nil:
		return fmt.Errorf("cannot promote the learner: %w", promoteErr)
	}
	return errors.New("cannot promote the learner: etcd accepted the promotion, but the member list shows a learner")
}

// UpdateMember replaces the peer URLs of a member with one URL. It succeeds if that is already the member's only peer
// URL.
func (c *Client) UpdateMember(ctx context.Context, id uint64, peerURL string) error {
	list, err := c.ownMembers(ctx)
	if err != nil {
		return err
	}
	m, ok := list.ByID(id)
	switch other, taken := list.ByPeerURL(peerURL); {
	case !ok:
		return ErrNotListed
	case slices.Equal(m.PeerURLs, []string{peerURL}):
		return nil
	case taken && other.ID != id:
		return fmt.Errorf("cannot update member %x: member %x already has the peer URL %s", id, other.ID, peerURL)
	}
	_, updateErr := send(ctx, c, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.MemberUpdateResponse, error) {
		return conn.MemberUpdate(ctx, id, []string{peerURL})
	})
	list, err = c.ownMembers(ctx)
	if err != nil {
		return joinErrors(updateErr, err)
	}
	m, ok = list.ByID(id)
	switch {
	case ok && slices.Equal(m.PeerURLs, []string{peerURL}):
		return nil
	case !ok:
		return joinErrors(ErrNotListed, updateErr)
	case updateErr != nil:
		return fmt.Errorf("cannot update member %x: %w", id, updateErr)
	}
	return fmt.Errorf("cannot update member %x: etcd accepted the update, but the member list shows %v", id, m.PeerURLs)
}

// MoveLeader transfers leadership from the member at leaderURL, the leader, to another voter. It returns when that
// voter leads.
func (c *Client) MoveLeader(ctx context.Context, leaderURL string, to uint64) error {
	_, err := once(ctx, c, leaderURL, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.MoveLeaderResponse, error) {
		return conn.MoveLeader(ctx, to)
	})
	if err != nil {
		return fmt.Errorf("cannot transfer leadership to member %x: %w", to, err)
	}
	return nil
}

// RemoveMember removes a voter or a learner. It succeeds if the member is gone already. etcd refuses to remove a
// connected voter if the remaining voters would have no quorum. In all other cases the caller must check that the
// member may be removed.
func (c *Client) RemoveMember(ctx context.Context, id uint64) error {
	list, err := c.ownMembers(ctx)
	if err != nil {
		return err
	}
	if _, ok := list.ByID(id); !ok {
		return nil
	}
	return c.remove(ctx, "member", id)
}

// RemoveLearner removes a learner. It succeeds if the member is gone already. It refuses to remove a member that has
// become a voter. etcd has no removal restricted to learners: a learner that becomes a voter between the check and the
// call is removed, unless the member that serves the call finds that the remaining voters would have no quorum.
func (c *Client) RemoveLearner(ctx context.Context, id uint64) error {
	list, err := c.ownMembers(ctx)
	if err != nil {
		return err
	}
	m, ok := list.ByID(id)
	if !ok {
		return nil
	}
	if !m.Learner {
		return fmt.Errorf("cannot remove learner %x: it is now a voter", id)
	}
	return c.remove(ctx, "learner", id)
}

// remove requests the removal and reads the result.
func (c *Client) remove(ctx context.Context, what string, id uint64) error {
	_, removeErr := send(ctx, c, func(ctx context.Context,
		conn *clientv3.Client,
	) (*clientv3.MemberRemoveResponse, error) {
		return conn.MemberRemove(ctx, id)
	})
	list, err := c.ownMembers(ctx)
	if err != nil {
		return joinErrors(removeErr, err)
	}
	_, still := list.ByID(id)
	switch {
	case still && removeErr != nil:
		return fmt.Errorf("cannot remove %s %x: %w", what, id, removeErr)
	case still:
		return fmt.Errorf("cannot remove %s %x: etcd accepted the removal, but the member list shows it", what, id)
	}
	return nil // the member is gone, whatever the call returned
}
