// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refused reports whether an error is a server's answer that counts as final, and not a failed connection. A
// learner's refusal to serve does not count: a configured endpoint may lead to a learner, and another one to a
// voter, which serves. The error of a member that has not reached the requested revision does not count either,
// because another member has returned that revision.
func refused(err error) bool {
	if isEtcd(err, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)) || isEtcd(err, rpctypes.ErrFutureRev) {
		return false
	}
	switch code(err) {
	case codes.FailedPrecondition, codes.NotFound, codes.InvalidArgument, codes.OutOfRange,
		codes.PermissionDenied, codes.Unauthenticated, codes.ResourceExhausted:
		return true
	}
	return false
}

func code(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &known) {
		return known.Code()
	}
	return status.Code(err)
}
