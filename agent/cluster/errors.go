// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refused tells whether an error is the cluster's own word, which another endpoint would only
// repeat, rather than a failure of the way to it. That a learner does not serve is no such word:
// a host in the configured list may hold one. Nor is it one that a member has not got as far as a revision
// which another has told of: that one has.
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
