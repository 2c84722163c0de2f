// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestErrorOfACallIsReadableAndKeepsItsCause(t *testing.T) {
	t.Parallel()
	dial := func(cause string) error {
		return status.Error(codes.Unavailable,
			`connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.2:2379: connect: `+cause+`"`)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "no answer in time"},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), "no answer in time"},
		{context.Canceled, "the request was cancelled"},
		{dial("connection refused"), "connection refused"},
		{dial("no route to host"), "no route to host"},
		{dial("something new"), "dial tcp 10.0.0.2:2379: connect: something new"},
		{
			status.Error(codes.Unavailable,
				`connection error: desc = "transport: authentication handshake failed: tls: bad certificate"`),
			"tls: bad certificate",
		},
		{
			status.Error(codes.Unavailable, `connection error: desc = "error reading server preface: EOF"`),
			"it closes the connection, or does not speak etcd's protocol",
		},
		{rpctypes.ErrNoLeader, "it has no leader"},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, "it did not reach consensus in time"},
		{rpctypes.ErrNoSpace, "its database is full"},
		{rpctypes.ErrPermissionDenied, "permission denied"},
		{errors.New("the client is closed"), "the client is closed"},
	} {
		got := readable(c.err)
		if got.Error() != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		if !errors.Is(got, c.err) || refused(got) != refused(c.err) || code(got) != code(c.err) {
			t.Errorf("%v has lost its cause: refused %t, code %s", c.err, refused(got), code(got))
		}
	}
	if readable(nil) != nil {
		t.Error("nil becomes an error")
	}
	if err := readable(rpctypes.ErrLeaseNotFound); !errors.Is(err, rpctypes.ErrLeaseNotFound) ||
		!errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
		t.Errorf("%v: not recognized as ErrLeaseNotFound", err)
	}
}

func TestAnAnswerThatAnotherMemberMayNotRepeatIsNotFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool // the answer is final
	}{
		{rpctypes.ErrGRPCNotSupportedForLearner, false},
		{rpctypes.ErrGRPCFutureRev, false},
		{rpctypes.ErrFutureRev, false},
		{rpctypes.ErrGRPCCompacted, true},
		{rpctypes.ErrGRPCMemberNotFound, true},
	} {
		if got := refused(c.err); got != c.want {
			t.Errorf("%v: refused %t, want %t", c.err, got, c.want)
		}
	}
}

func TestWhyNoVoterAnswersIsOnePlainLine(t *testing.T) {
	t.Parallel()
	c, err := New(Options{
		Endpoints:   []string{"http://127.0.0.1:1", "http://127.0.0.1:2"},
		CallTimeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, err = c.Members(t.Context())
	want := fmt.Sprintf("%s: http://127.0.0.1:1: connection refused; http://127.0.0.1:2: connection refused",
		ErrUnreachable)
	if err == nil || err.Error() != want || strings.Contains(err.Error(), "rpc") {
		t.Errorf("%v, want %s", err, want)
	}
}
