// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ErrServed means that a live process already serves the socket.
var ErrServed = errors.New("already served")

// The error codes of this package. A Backend adds its own.
const (
	CodeBadRequest   = "BAD_REQUEST"   // the request is invalid: do not repeat it unchanged
	CodeNotPermitted = "NOT_PERMITTED" // the caller may not do this
	CodeNotFound     = "NOT_FOUND"     // no such path or method
	CodeTooLarge     = "TOO_LARGE"     // the body is over the limit
	CodeConflict     = "CONFLICT"      // the host is not in the expected state
	CodeNotPaused    = "NOT_PAUSED"    // there is no pause to end
	CodeBusy         = "BUSY"          // too many requests at once
	CodeTimeout      = "TIMEOUT"       // no answer in time
	CodeUnreachable  = "UNREACHABLE"   // the client cannot reach quorumd
	CodeNotSaved     = "NOT_SAVED"     // this host's disk did not store it, or not in time: it may still be stored
	CodeInternal     = "INTERNAL"      // a bug in quorumd
)

// Error is a refusal or failure as seen by a caller of the socket.
type Error struct {
	Kind    Kind   `json:"-"` // of a Backend's refusal
	Status  int    `json:"-"` // HTTP status; 0 for a Backend's refusal and for the client's own errors
	Code    string `json:"code"`
	Message string `json:"message"`        // "cannot …: cause"
	Hint    string `json:"hint,omitempty"` // what to do
	Err     error  `json:"-"`              // the cause, if known on this side
}

// Kind is the kind of a refusal. A Backend sets it; the server maps it to an HTTP status.
type Kind int

// The kinds of refusals.
const (
	Fault     Kind = iota // not a refusal: the request failed
	NotNow                // a condition is not met yet: the same request may succeed later
	Conflicts             // the host or the cluster is not in the expected state
	Wrong                 // the request is invalid: do not repeat it unchanged
	Forbidden             // it is not allowed
)

func (k Kind) status() int {
	switch k { //exhaustive:enforce
	case NotNow:
		return http.StatusServiceUnavailable
	case Conflicts:
		return http.StatusConflict
	case Wrong:
		return http.StatusBadRequest
	case Forbidden:
		return http.StatusForbidden
	case Fault:
	}
	return http.StatusInternalServerError
}

// Error returns the message, and the hint after a semicolon.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorDocument is an Error on the wire.
type errorDocument struct {
	Error *Error `json:"error"`
}

// wireError converts any error of a handler to the form that the caller gets.
func wireError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		shown := *e
		if shown.Status < 400 || shown.Status > 599 {
			shown.Status = shown.Kind.status()
		}
		return &shown
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{
			Status: http.StatusGatewayTimeout, Code: CodeTimeout, Message: err.Error(), Err: err,
			Hint: "etcd may be slow or without a quorum: quorumctl status shows it",
		}
	}
	return &Error{
		Status: http.StatusInternalServerError, Code: CodeInternal, Message: err.Error(), Err: err,
		Hint: "journalctl -u quorumd shows more",
	}
}

func badRequest(hint, format string, args ...any) *Error {
	return &Error{
		Status: http.StatusBadRequest, Code: CodeBadRequest, Message: fmt.Sprintf(format, args...),
		Hint: hint,
	}
}
