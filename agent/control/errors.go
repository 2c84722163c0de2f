// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

// Error codes. The agent adds its own.
const (
	CodeBadRequest   = "BAD_REQUEST"   // the request is invalid: do not repeat it unchanged
	CodeNotPermitted = "NOT_PERMITTED" // the caller may not do this
	CodeNotFound     = "NOT_FOUND"     // no such path or method
	CodeTooLarge     = "TOO_LARGE"     // the body is over the limit
	CodeConflict     = "CONFLICT"      // the host or the cluster is not in the expected state
	CodeNotPaused    = "NOT_PAUSED"    // there is no pause to end
	CodeBusy         = "BUSY"          // too many requests at once
	CodeTimeout      = "TIMEOUT"       // no answer in time
	CodeUnreachable  = "UNREACHABLE"   // the client cannot reach quorumd
	CodeNotSaved     = "NOT_SAVED"     // this host's disk did not store the request; after a timeout it may still do so
	CodeInternal     = "INTERNAL"      // an error without its own code, or an answer that the client does not expect
)

// Error is a refusal or a failure of a request.
type Error struct {
	Kind    Kind   `json:"-"` // set by the agent
	Status  int    `json:"-"` // HTTP status of an answer; 0 in the agent, and for errors of the client itself
	Code    string `json:"code"`
	Message string `json:"message"`        // "cannot …: cause"
	Hint    string `json:"hint,omitempty"` // what to do
	Err     error  `json:"-"`              // the cause; not transmitted
}

// Kind classifies an Error. The agent sets it, and the server maps it to an HTTP status.
type Kind int

// The kinds of errors.
const (
	Fault     Kind = iota // not a refusal: the request failed
	NotNow                // a condition is not met yet: the same request may succeed later
	Conflicts             // the host or the cluster is not in the expected state
	Wrong                 // the request is invalid: do not repeat it unchanged
	Forbidden             // the request is not allowed
)

// Error returns the message, and the hint after a semicolon.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorDocument is an Error on the wire.
type ErrorDocument struct {
	Error *Error `json:"error"`
}
