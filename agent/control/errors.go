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

// The codes of the errors that this package makes. A Backend adds its own.
const (
	CodeBadRequest   = "BAD_REQUEST"   // the request is not understood: do not repeat it as it is
	CodeNotPermitted = "NOT_PERMITTED" // the caller may not do this
	CodeNotFound     = "NOT_FOUND"     // there is no such path or method
	CodeTooLarge     = "TOO_LARGE"     // the body is over the bound
	CodeConflict     = "CONFLICT"      // the host is not in the state that the caller expects
	CodeNotPaused    = "NOT_PAUSED"    // there is no pause to end
	CodeBusy         = "BUSY"          // too many requests at once
	CodeTimeout      = "TIMEOUT"       // no answer within the bound
	CodeUnreachable  = "UNREACHABLE"   // the client cannot reach quorumd
	CodeNotNoted     = "NOT_NOTED"     // this host's disk did not take it, or not in time: it may still be noted
	CodeInternal     = "INTERNAL"      // a fault of quorumd
)

// Error is a refusal or failure as the other side of the socket sees it.
type Error struct {
	Kind    Kind   `json:"-"` // of a Backend's refusal
	Status  int    `json:"-"` // HTTP status; 0 for a Backend's refusal and for an error of the client's own
	Code    string `json:"code"`
	Message string `json:"message"`        // "cannot …: cause"
	Hint    string `json:"hint,omitempty"` // what to do
	Err     error  `json:"-"`              // the cause, if there is one on this side
}

// Kind tells a caller in which way it is refused. A Backend gives it; the server makes a status of HTTP of it.
type Kind int

// The kinds of refusals.
const (
	Fault     Kind = iota // no refusal: it has failed
	NotNow                // something is missing that may come: the same request may succeed later
	Conflicts             // the host or the cluster is not in the state that the caller expects
	Wrong                 // the request itself: do not repeat it as it is
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

// Error gives the message, and the hint after a semicolon.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// errorDocument is an Error on the wire.
type errorDocument struct {
	Error *Error `json:"error"`
}

// wireError gives any error of a handler the shape the caller gets.
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
