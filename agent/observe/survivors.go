// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

// askSurvivors asks every known member directly if the member list could not be read, because a running member reports
// its state even without a quorum. It returns nil if the answers do not explain the failure.
func (o *Observer) askSurvivors(ctx context.Context, r *round.Round) error {
	list := o.lastListed()
	found := round.Answers{Membership: list, Of: o.opt.Etcd.Statuses(ctx, list.Members)}
	var runs, silent []string
	for _, m := range list.Members {
		s := found.Of[m.ID]
		switch {
		case m.Learner:
		case s.Err != nil:
			silent = append(silent, cmp.Or(m.Name, firstOf(m.PeerURLs))+" ("+s.Err.Error()+")")
		case s.Linearizable:
			return nil // there is a quorum, so the read of the list failed for another reason
		default:
			runs = append(runs, cmp.Or(m.Name, firstOf(m.PeerURLs)))
		}
	}
	slices.Sort(runs) // the list is ordered by random IDs
	slices.Sort(silent)
	r.Answers = found
	if len(runs) == 0 {
		return nil
	}
	if len(silent) == 0 || list.ClusterID == 0 {
		return errors.New(enumerate(runs, "answers, but has no quorum", "answer, but have no quorum"))
	}
	return errors.New(enumerate(runs, "answers", "answer") + "; " + enumerate(silent, "does not", "do not"))
}

// leaderless records in the view which other voters of this host's cluster answer but have no leader, if this host is a
// voter and those voters show that there is no quorum. If even one voter that answers has a leader, leaderless records
// none: the others may merely be cut off from that leader.
func (b *Builder) leaderless(v *policy.View, r *round.Round) {
	var names []string
	led, voters, votes := false, 0, false
	mine, listed := r.OwnMember(r.Answers.Membership, b.config.Etcd.PeerURL)
	for _, m := range r.Answers.Membership.Members {
		s, asked := r.Answers.Of[m.ID]
		own := listed && m.ID == mine.ID
		if !m.Learner {
			voters++
			votes = votes || own
		}
		if !asked || s.Err != nil || m.Learner || s.Learner || own || s.ClusterID != v.Cluster.ExpectedID ||
			s.MemberID != m.ID {
			continue
		}
		led = led || s.Leader != 0
		names = append(names, cmp.Or(m.Name, firstOf(m.PeerURLs)))
	}
	if holds := !r.Reachable && !led && v.Cluster.ExpectedID != 0 && votes &&
		policy.NoQuorumWithout(voters, len(names)); holds {
		slices.Sort(names)
		v.Cluster.Leaderless = enumerate(names, "answers, but has no leader", "answer, but have no leader")
	}
	v.Cluster.LeaderlessFor = b.since.truth("leaderless", v.Cluster.Leaderless != "", r.At, r.Number)
}

// lastListed returns the members of this host's cluster from the last list. Before the first list, it assumes a member
// at each known endpoint.
func (o *Observer) lastListed() cluster.Membership {
	if len(o.home.Members) > 0 {
		return o.home
	}
	var list cluster.Membership
	endpoints, _ := o.opt.Etcd.Known() // on an error, use the endpoints known so far
	for i, endpoint := range endpoints {
		list.Members = append(list.Members, cluster.Member{
			ID: uint64(i) + 1, Name: endpoint,
			ClientURLs: []string{endpoint},
		})
	}
	return list
}

// enumerate joins names into a clause such as "a, b and c answer"; one and many are the predicate in singular and
// plural.
func enumerate(names []string, one, many string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " " + many
	}
	return names[0] + " " + one
}

// explain returns an error that names the layer at which the connection to the cluster fails.
func (o *Observer) explain(ctx context.Context, err error) error {
	endpoints, undiscovered := o.opt.Etcd.Known()
	whys := make([]error, len(endpoints))
	var wait sync.WaitGroup
	for i, endpoint := range endpoints {
		wait.Go(func() { whys[i] = o.opt.Etcd.Diagnose(ctx, endpoint) })
	}
	wait.Wait()
	i := mostTelling(whys, int(o.in.Number)%len(endpoints))
	switch {
	case whys[i] != nil && undiscovered != nil:
		return fmt.Errorf("no voter answers; %s: %w; %w", endpoints[i], whys[i], undiscovered)
	case whys[i] != nil:
		return fmt.Errorf("no voter answers; %s: %w", endpoints[i], whys[i])
	}
	return err // that connection succeeds, and err describes the failure
}

// mostTelling returns the index of the endpoint with the most informative failure: one that accepts connections and
// then fails, otherwise next. A refused connection is less informative, because a host without a member always refuses
// connections at its own endpoint.
func mostTelling(whys []error, next int) int {
	for i, why := range whys {
		op, ok := errors.AsType[*net.OpError](why)
		closed := ok && op.Op == "dial"
		if why != nil && !closed {
			return i
		}
	}
	return next
}
