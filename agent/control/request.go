// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// MaxReason is the longest reason of a request, in characters.
const MaxReason = 256

// Done is the answer to a request for which there is no other document to return.
type Done struct {
	By string `json:"by"` // the requester, as recorded
}

// BootstrapRequest requests that a host bootstrap a new cluster.
type BootstrapRequest struct {
	Confirm string `json:"confirm,omitempty"` // the expected cluster name; if set, it must match
}

// ReleaseRequest requests that the operation in flight be released.
type ReleaseRequest struct {
	Force  bool   `json:"force"`  // must be true: only an operator can know that the host is really down
	Reason string `json:"reason"` // required, one line
}

// Bounds of a pause's duration, and its default.
const (
	MaxPause     = 7 * 24 * time.Hour
	DefaultPause = 4 * time.Hour
)

// PauseRequest requests a pause.
type PauseRequest struct {
	Reason string   `json:"reason"`        // required, one line
	For    Duration `json:"for,omitempty"` // over 0, at most MaxPause; DefaultPause if absent
}
