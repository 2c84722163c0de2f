// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/quorumd/quorumd/agent/control"
)

// kindStatus returns the HTTP status for a kind of error.
func kindStatus(k control.Kind) int {
	switch k { //exhaustive:enforce
	case control.NotNow:
		return http.StatusServiceUnavailable
	case control.Conflicts:
		return http.StatusConflict
	case control.Wrong:
		return http.StatusBadRequest
	case control.Forbidden:
		return http.StatusForbidden
	case control.Fault:
	}
	return http.StatusInternalServerError
}

// toError converts an error of a handler to the error that the caller gets.
func toError(err error) *control.Error {
	if e, ok := errors.AsType[*control.Error](err); ok {
		out := *e
		if out.Status < 400 || out.Status > 599 {
			out.Status = kindStatus(out.Kind)
		}
		return &out
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &control.Error{
			Status: http.StatusGatewayTimeout, Code: control.CodeTimeout, Message: err.Error(), Err: err,
			Hint: "etcd may be slow or without a quorum: see quorumctl status",
		}
	}
	return &control.Error{
		Status: http.StatusInternalServerError, Code: control.CodeInternal, Message: err.Error(), Err: err,
		Hint: "journalctl -u quorumd shows more",
	}
}
