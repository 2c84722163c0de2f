// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"time"
)

// Maximum and default number of history lines in one answer.
const (
	MaxHistory     = 1000
	DefaultHistory = 50
)

// History is a list of lines, oldest first.
type History struct {
	APIVersion string        `json:"apiVersion"`
	Lines      []HistoryLine `json:"lines"`
	// no voter answers: newer lines, and other hosts' lines, may be missing
	NotNewest bool `json:"notNewest,omitempty"`
}

// ErrNotNewest is returned together with lines that may not be the newest.
var ErrNotNewest = errors.New("no voter answers: these are the lines that quorumd on this host has written since its " +
	"start")

// HistoryLine is one line of the cluster's history.
type HistoryLine struct {
	Revision int64     `json:"revision"` // etcd's revision of the line
	Time     time.Time `json:"time"`
	Host     string    `json:"host"` // the host that wrote the line
	HostName string    `json:"hostName"`
	Kind     string    `json:"kind"` // step, refusal, operation, operator or mute
	Code     string    `json:"code"`
	Text     string    `json:"text"`
	// Operation is the kind of an ended operation: join, replace, cycle, remove or leave; otherwise absent.
	Operation string `json:"operation,omitempty"`
	// Outcome is the result: "ok" or "error" for a step, the code of its end for an operation. It is absent if nothing
	// has ended.
	Outcome string `json:"outcome,omitempty"`
}
