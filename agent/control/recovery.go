// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// CodeReading means that the log is still being read: try again.
const CodeReading = "READING"

// Recovery is this host's recovery plan: the one in force, or the last one.
type Recovery struct {
	Plan     string `json:"plan"`
	Survivor string `json:"survivor"`           // the host whose data is kept
	Alone    bool   `json:"alone"`              // this host is the survivor
	Snapshot string `json:"snapshot,omitempty"` // the snapshot that this host is restored from, instead of its data

	Old     record.MemberID `json:"oldClusterID"`
	New     record.MemberID `json:"newClusterID"`
	By      string          `json:"by"`
	Since   time.Time       `json:"since"`
	GivenUp string          `json:"givenUp,omitempty"` // who abandoned the plan
	Done    bool            `json:"done,omitempty"`    // the plan had already succeeded
}

// RecoveryEnd is the end of the last plan on this host.
type RecoveryEnd struct {
	Recovery
	Ended time.Time         `json:"ended"`
	Code  policy.ReasonCode `json:"code"` // RECOVERED, or why it was abandoned
}

// RecoveryFacts returns the facts about this host that a recovery plan requires. It works while etcd is down.
func (c *Client) RecoveryFacts(ctx context.Context) (recovery.Facts, error) {
	var f recovery.Facts
	err := c.do(ctx, http.MethodPost, "/v1/recovery/facts", nil, &f)
	return f, err
}

// ApplyRecovery begins this host's part of a plan.
func (c *Client) ApplyRecovery(ctx context.Context, plan recovery.Plan) (Recovery, error) {
	var r Recovery
	err := c.do(ctx, http.MethodPut, "/v1/recovery", plan, &r)
	return r, err
}

// AbandonRecovery abandons the plan in force on this host.
func (c *Client) AbandonRecovery(ctx context.Context) (Recovery, error) {
	var r Recovery
	err := c.do(ctx, http.MethodDelete, "/v1/recovery", nil, &r)
	return r, err
}
