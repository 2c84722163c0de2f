// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

// slowToAnswer is an etcd with a leader that is far too slow: a write times out, and takes effect when the test
// decides.
type slowToAnswer struct {
	cluster.Etcd
	slow    bool
	late    []func() error
	refuses error // the error of every write, unless nil
}

func (s *slowToAnswer) Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if s.refuses != nil {
		return nil, s.refuses
	}
	if !s.slow {
		return s.Etcd.Txn(ctx, conditions, then...)
	}
	s.late = append(s.late, func() error {
		_, err := s.Etcd.Txn(context.WithoutCancel(ctx), conditions, then...)
		return err
	})
	return nil, context.DeadlineExceeded
}

// slowHost is a host that has written its record and whose reads no longer complete.
type slowHost struct {
	*hostRecord
	t    *testing.T
	etcd *slowToAnswer
}

func newSlowHost(t *testing.T) *slowHost {
	t.Helper()
	member := testbed.StartCluster(t, 1, testbed.ClusterOptions{Extra: []string{"--unsafe-no-fsync"}}).Members[0]
	client, err := cluster.New(cluster.Options{
		Endpoints: []string{member.Options.ClientURL}, CallTimeout: 30 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := &slowHost{t: t, etcd: &slowToAnswer{Etcd: client}}
	opt := Options{
		Etcd: s.etcd, Instance: "i1", Now: func() time.Duration { return 0 }, Logger: slog.New(slog.DiscardHandler),
	}
	opt.Config.Host.ID, opt.Config.Etcd.ClientURL = "n1", member.Options.ClientURL
	opt.Config.Timing.CallTimeout, opt.Config.Timing.HostRecordTTL = 30*time.Second, time.Minute
	s.hostRecord = newHostRecord(opt, record.KeysFor("c"), nil)
	s.writes(health.OK, 0)
	s.etcd.slow = true
	return s
}

// writes publishes the record after a round in which reads completed.
func (s *slowHost) writes(state health.State, answers int64) {
	s.t.Helper()
	s.etcd.slow = false
	_, seen := s.stored()
	own := record.Host{ID: "n1", Instance: "i1", Health: state.String(), Answers: answers}
	if err := s.write(s.t.Context(), own, seen); err != nil {
		s.t.Fatal(err)
	}
}

// publishes publishes a health state while no read completes.
func (s *slowHost) publishes(state health.State) {
	r := &round.Round{}
	r.Assessment.State = state
	s.publishHealth(s.t.Context(), r)
}

// lands lets the oldest unanswered write take effect.
func (s *slowHost) lands() {
	s.t.Helper()
	if len(s.etcd.late) == 0 {
		s.t.Fatal("no write is left that could take effect late")
	}
	if err := s.etcd.late[0](); err != nil {
		s.t.Fatal(err)
	}
	s.etcd.late = s.etcd.late[1:]
}

func (s *slowHost) stored() (record.Host, int64) {
	s.t.Helper()
	found, err := s.etcd.ReadAt(s.t.Context(), s.opt.Config.Etcd.ClientURL, cluster.Span{Start: s.keys.Host("n1")})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(found.Pairs) == 0 {
		return record.Host{}, 0
	}
	h, err := record.Decode[record.Host](found.Pairs[0].Value)
	if err != nil {
		s.t.Fatal(err)
	}
	return h, found.Pairs[0].ModRevision
}

func (s *slowHost) expect(what string, state health.State, answers int64) {
	s.t.Helper()
	if h, _ := s.stored(); h.Health != state.String() || h.Answers != answers {
		s.t.Errorf("%s: the record has health state %s and answers %d, want %s and %d", what, h.Health, h.Answers,
			state, answers)
	}
}

// While etcd's alarm NOSPACE is active, no key can be written and no lease granted. If the agent forgot its lease
// during the alarm, its record would expire, and the host would appear to have no agent.
func TestAHostStaysPresentWhileEtcdHasNoSpaceForItsRecord(t *testing.T) {
	t.Parallel()
	for refused, keeps := range map[error]bool{
		rpctypes.ErrNoSpace: true, rpctypes.ErrCorrupt: true, context.DeadlineExceeded: true,
		rpctypes.ErrLeaseNotFound: false, rpctypes.ErrGRPCLeaseNotFound: false,
	} {
		s := newSlowHost(t)
		s.etcd.refuses = refused
		_, seen := s.stored()
		err := s.write(t.Context(), record.Host{ID: "n1", Health: "SLOW"}, seen)
		if !errors.Is(err, refused) || (s.lease != 0) != keeps {
			t.Errorf("%v: the error is %v, and the lease is %x", refused, err, s.lease)
		}
	}
}

func TestALateHealthStateDoesNotOverwriteANewerRecord(t *testing.T) {
	t.Parallel()
	s := newSlowHost(t)
	s.publishes(health.Slow)
	s.publishes(health.Slow) // the first write got no answer
	s.writes(health.OK, 7)
	s.lands()
	s.expect("the first health state takes effect after the record was written", health.OK, 7)
	s.lands()
	s.expect("and so does the second", health.OK, 7)
}

func TestALateHealthStateDoesNotOverwriteANewerOne(t *testing.T) {
	t.Parallel()
	s := newSlowHost(t)
	s.publishes(health.Slow)
	s.etcd.slow = false
	s.publishes(health.Stalled)
	s.expect("the second health state is answered", health.Stalled, 0)
	s.lands()
	s.expect("the first one takes effect after it", health.Stalled, 0)
}

func TestAChangedHealthStateIsPublishedAfterUnansweredOnes(t *testing.T) {
	t.Parallel()
	s := newSlowHost(t)
	for _, state := range []health.State{health.Slow, health.Stalled, health.OK} {
		s.publishes(state)
		s.lands()
		s.expect("it has taken effect", state, 0)
	}
	s.publishes(health.OK)
	if n := len(s.etcd.late); n != 0 {
		t.Errorf("the stored health state was written again, %d times", n)
	}
}
