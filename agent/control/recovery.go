// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
)

// Recoverer brings a cluster back that has lost its majority for good, when an operator asks for it. The rules of an
// Operator's methods hold for it.
type Recoverer interface {
	// RecoveryFacts tells what this host knows, and what its data say of themselves. It changes nothing.
	RecoveryFacts(ctx context.Context) (recovery.Facts, error)
	// ApplyRecovery has this host do its part of a plan, and gives it as it stands; the status shows how it goes. The
	// plan that stands, or has ended well, is given as it is.
	ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (Recovery, error)
	// AbandonRecovery gives up the plan that is in force, and gives it as it stands. One by which this host has begun
	// to part with its data, or none at all, is refused with CodeConflict.
	AbandonRecovery(ctx context.Context, by string) (Recovery, error)
}

// CodeReading is the code of a refusal that means: the log is still being read, ask again.
const CodeReading = "READING"

// Recovery is the plan that is in force on this host.
type Recovery struct {
	Plan     string    `json:"plan"`
	Survivor string    `json:"survivor"`           // the host that continues alone
	Alone    bool      `json:"alone"`              // it is this one
	Snapshot string    `json:"snapshot,omitempty"` // with which this one goes on, instead of its data
	Old      string    `json:"oldClusterID"`
	New      string    `json:"newClusterID"`
	By       string    `json:"by"`
	Since    time.Time `json:"since"`
	GivenUp  string    `json:"givenUp,omitempty"` // by whom it was given up
	Done     bool      `json:"done,omitempty"`    // it had ended well before it was asked for again
}

// RecoveryEnd is how the last plan ended on this host.
type RecoveryEnd struct {
	Recovery
	Ended time.Time `json:"ended"`
	Code  string    `json:"code"` // RECOVERED, or why it was given up
}

const planHint = "send the file that quorumctl recover plan has written"

// postRecoveryFacts changes nothing, but it has a child read all of the log: not everyone on the host may ask for that.
func (s *Server) postRecoveryFacts(r request) (response, error) {
	facts, err := s.opt.Backend.RecoveryFacts(r.ctx)
	return response{http.StatusOK, facts}, err
}

func (s *Server) putRecovery(r request) (response, error) {
	plan, err := recovery.ReadPlan(r.body)
	if err != nil {
		return response{}, badRequest(planHint, "%s", shorten(err.Error()))
	}
	m, err := s.opt.Backend.ApplyRecovery(r.ctx, plan, r.by)
	return response{http.StatusOK, m}, err
}

func (s *Server) deleteRecovery(r request) (response, error) {
	m, err := s.opt.Backend.AbandonRecovery(r.ctx, r.by)
	return response{http.StatusOK, m}, err
}

// RecoveryFacts asks what this host knows when a majority is lost. It works while etcd is down.
func (c *Client) RecoveryFacts(ctx context.Context) (recovery.Facts, error) {
	var f recovery.Facts
	err := c.do(ctx, http.MethodPost, "/v1/recovery/facts", nil, &f)
	return f, err
}

// ApplyRecovery has this host do its part of a plan.
func (c *Client) ApplyRecovery(ctx context.Context, plan recovery.Plan) (Recovery, error) {
	var r Recovery
	err := c.do(ctx, http.MethodPut, "/v1/recovery", plan, &r)
	return r, err
}

// AbandonRecovery gives up the plan that is in force on this host.
func (c *Client) AbandonRecovery(ctx context.Context) (Recovery, error) {
	var r Recovery
	err := c.do(ctx, http.MethodDelete, "/v1/recovery", nil, &r)
	return r, err
}
