// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"time"
)

// The bounds of how many lines of history one request may ask for, and what it gets if it does
// not say.
const (
	MaxHistory     = 1000
	DefaultHistory = 50
)

// History is a list of lines, oldest first.
type History struct {
	APIVersion string        `json:"apiVersion"`
	Lines      []HistoryLine `json:"lines"`
	// no voter answers: newer ones, and those of other hosts, may be missing
	NotNewest bool `json:"notNewest,omitempty"`
}

// ErrNotNewest comes with lines that are not known to be the newest.
var ErrNotNewest = errors.New("no voter answers: these are the lines that quorumd on this host has written since its " +
	"start")

// HistoryLine is one step that was taken, one refusal that changed, or one operation's begin or end.
type HistoryLine struct {
	Revision int64     `json:"revision"` // of etcd, when it was written
	Time     time.Time `json:"time"`
	Host     string    `json:"host"` // the host that wrote it
	HostName string    `json:"hostName"`
	Kind     string    `json:"kind"` // step, refusal or op
	Code     string    `json:"code"`
	Text     string    `json:"text"`
	// Operation is the kind of the operation whose end the line tells: join, cycle or remove; else it is left out.
	Operation string `json:"operation,omitempty"`
	// Outcome is how it went: of a step "ok" or "error", of an operation that has ended the code of its end. It is left
	// out on a line that tells of no end, and on those that an older agent has written.
	Outcome string `json:"outcome,omitempty"`
}
