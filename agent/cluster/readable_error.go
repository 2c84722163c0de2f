// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// readableError replaces the text of a call's error with a readable one. errors.Is and errors.As still find the
// original.
type readableError struct {
	text string
	err  error
}

func (w readableError) Error() string { return w.text }

func (w readableError) Unwrap() error { return w.err }

// readable makes the text of a call's error readable: the texts of gRPC and the etcd client are written for programs.
func readable(err error) error {
	if err == nil {
		return nil
	}
	if text := describe(err); text != err.Error() {
		return readableError{text, err}
	}
	return err
}

// joined is a list of errors printed on one line.
type joined []error

func (s joined) Error() string {
	var texts []string
	for _, err := range s {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (s joined) Unwrap() []error { return s }

// joinErrors joins the non-nil errors on one line, for messages, logs and the status.
func joinErrors(errs ...error) error {
	var some joined
	for _, err := range errs {
		if err != nil {
			some = append(some, err)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some
}

func describe(err error) string {
	var known rpctypes.EtcdError
	switch s, isStatus := status.FromError(err); {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.As(rpctypes.Error(err), &known):
		return describeEtcd(known)
	case isStatus && s.Code() == codes.DeadlineExceeded:
		return "no answer in time"
	case isStatus:
		return describeTransport(s.Message())
	}
	return describeTransport(err.Error())
}

// describeEtcd describes an error returned by etcd itself.
func describeEtcd(err rpctypes.EtcdError) string {
	for text, causes := range map[string][]error{
		"it has no leader": {rpctypes.ErrNoLeader},
		"it did not reach consensus in time": {
			rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
			rpctypes.ErrTimeoutDueToConnectionLost,
		},
		"its database is full": {rpctypes.ErrNoSpace},
		"it is stopping":       {rpctypes.ErrStopped},
	} {
		for _, cause := range causes {
			if errors.Is(err, cause) {
				return text
			}
		}
	}
	return strings.TrimPrefix(err.Error(), "etcdserver: ")
}

// describeTransport returns a short text for a common network error. From any other error it strips the text that gRPC
// wraps around it.
func describeTransport(text string) string {
	for _, known := range []string{
		"connection refused", "no route to host", "network is unreachable",
		"connection reset by peer", "no such host",
	} {
		if strings.Contains(text, known) {
			return known
		}
	}
	switch {
	case strings.Contains(text, "i/o timeout"), strings.Contains(text, "context deadline exceeded"):
		return "no answer in time"
	case strings.Contains(text, "error reading server preface"):
		return "it closes the connection, or does not speak etcd's protocol"
	}
	if i := strings.LastIndex(text, "desc = "); i >= 0 {
		text = strings.Trim(text[i+len("desc = "):], `"`)
	}
	for _, around := range []string{
		"transport: ", "Error while dialing: ", "authentication handshake failed: ",
		"etcdserver: ",
	} {
		text = strings.TrimPrefix(text, around)
	}
	return text
}
