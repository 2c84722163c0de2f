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

// slowToAnswer is an etcd behind a leader that is far too slow: a write is not answered in time, and takes effect when
// the test says so.
type slowToAnswer struct {
	Etcd
	slow    bool
	late    []func() error
	refuses error // what is written, if it is not nil
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

// speaker is a host that has written its record, and whose reads do not come back from now on.
type speaker struct {
	*presence
	t    *testing.T
	etcd *slowToAnswer
}

func newSpeaker(t *testing.T) *speaker {
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
	s := &speaker{t: t, etcd: &slowToAnswer{Etcd: client}}
	opt := Options{
		Etcd: s.etcd, Instance: "i1", Now: func() time.Duration { return 0 }, Logger: slog.New(slog.DiscardHandler),
	}
	opt.Config.Host.ID, opt.Config.Etcd.ClientURL = "n1", member.Options.ClientURL
	opt.Config.Timing.CallTimeout, opt.Config.Timing.PresenceTTL = 30*time.Second, time.Minute
	s.presence = newPresence(opt, record.KeysFor("c"), nil)
	s.writes(health.OK, 0)
	s.etcd.slow = true
	return s
}

// writes has the record written as while reads come back.
func (s *speaker) writes(state health.State, answers int64) {
	s.t.Helper()
	s.etcd.slow = false
	_, seen := s.stands()
	own := record.Host{ID: "n1", Instance: "i1", Health: state.String(), Answers: answers}
	if err := s.write(s.t.Context(), own, seen); err != nil {
		s.t.Fatal(err)
	}
}

// says has the verdict told as while no read comes back.
func (s *speaker) says(state health.State) {
	r := &round.Round{}
	r.Verdict.State = state
	s.word(s.t.Context(), r)
}

// lands lets a word that was not answered take effect, the first of those that have not.
func (s *speaker) lands() {
	s.t.Helper()
	if len(s.etcd.late) == 0 {
		s.t.Fatal("nothing was told that could take effect late")
	}
	if err := s.etcd.late[0](); err != nil {
		s.t.Fatal(err)
	}
	s.etcd.late = s.etcd.late[1:]
}

func (s *speaker) stands() (record.Host, int64) {
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

func (s *speaker) expect(what string, state health.State, answers int64) {
	s.t.Helper()
	if h, _ := s.stands(); h.Health != state.String() || h.Answers != answers {
		s.t.Errorf("%s: it stands that the host is %s and answers %d, want %s and %d", what, h.Health, h.Answers,
			state, answers)
	}
}

// While etcd's alarm NOSPACE stands nothing can be written, and no lease be granted: a host whose agent then forgot its
// own would count as one without an agent as soon as that has run out.
func TestAHostStaysPresentWhoseRecordEtcdHasNoRoomFor(t *testing.T) {
	t.Parallel()
	for refused, keeps := range map[error]bool{
		rpctypes.ErrNoSpace: true, rpctypes.ErrCorrupt: true, context.DeadlineExceeded: true,
		rpctypes.ErrLeaseNotFound: false, rpctypes.ErrGRPCLeaseNotFound: false,
	} {
		s := newSpeaker(t)
		s.etcd.refuses = refused
		_, seen := s.stands()
		err := s.write(t.Context(), record.Host{ID: "n1", Health: "SLOW"}, seen)
		if !errors.Is(err, refused) || (s.lease != 0) != keeps {
			t.Errorf("%v: the error is %v, and the lease is %x", refused, err, s.lease)
		}
	}
}

func TestAWordThatTakesEffectLateDoesNotStandWhereANewerRecordDid(t *testing.T) {
	t.Parallel()
	s := newSpeaker(t)
	s.says(health.Slow)
	s.says(health.Slow) // no answer came
	s.writes(health.OK, 7)
	s.lands()
	s.expect("the first word lands after the record was written", health.OK, 7)
	s.lands()
	s.expect("and so does the second", health.OK, 7)
}

func TestAWordThatTakesEffectLateDoesNotStandWhereANewerWordDid(t *testing.T) {
	t.Parallel()
	s := newSpeaker(t)
	s.says(health.Slow)
	s.etcd.slow = false
	s.says(health.Stalled)
	s.expect("the second word is answered", health.Stalled, 0)
	s.lands()
	s.expect("the first one lands after it", health.Stalled, 0)
}

func TestAVerdictThatChangesIsToldAlsoWhenNoWordBeforeItWasAnswered(t *testing.T) {
	t.Parallel()
	s := newSpeaker(t)
	for _, state := range []health.State{health.Slow, health.Stalled, health.OK} {
		s.says(state)
		s.lands()
		s.expect("it has landed", state, 0)
	}
	s.says(health.OK)
	if n := len(s.etcd.late); n != 0 {
		t.Errorf("what stands there was told once more, %d times", n)
	}
}
