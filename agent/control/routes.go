// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// route is one request of the API.
type route struct {
	method string
	path   string
	access access
	params []string      // of the query; others are refused
	slots  chan struct{} // limits the requests that wait for the backend; nil for an answer from memory
	handle func(request) (response, error)
}

// request is what a handler sees of an HTTP request.
type request struct {
	ctx   context.Context
	query url.Values
	body  io.Reader
	by    string
}

// response is a handler's answer.
type response struct {
	status int
	body   any // encoded as JSON, or already *encoded
}

// Done is the answer to a change without a document of its own.
type Done struct {
	By string `json:"by"` // the requester, as recorded
}

// routes returns the whole API.
func (s *Server) routes() []route {
	reads := make(chan struct{}, s.limits.waiting)
	changes := make(chan struct{}, s.limits.waiting)
	return []route{
		{"GET", "/v1/status", look, nil, nil, s.getStatus},
		{"GET", "/v1/checks", look, nil, nil, s.getChecks},
		{"GET", "/v1/history", look, []string{"limit"}, reads, s.getHistory},
		{"GET", "/v1/bootstrap", look, nil, reads, s.getBootstrap},
		{"POST", "/v1/bootstrap", change, nil, changes, s.postBootstrap},
		{"PUT", "/v1/pause", change, nil, changes, s.putPause},
		{"DELETE", "/v1/pause", change, nil, changes, s.deletePause},
		{"POST", "/v1/operation/release", change, nil, changes, s.postRelease},
		{"PUT", "/v1/removal", change, nil, changes, s.putRemoval},
		{"PUT", "/v1/maintenance", change, nil, changes, s.putMaintenance},
		{"DELETE", "/v1/maintenance", change, nil, changes, s.deleteMaintenance},
		{"PUT", "/v1/mute", change, nil, changes, s.putMute},
		{"DELETE", "/v1/mute", change, []string{"code"}, changes, s.deleteMute},
		{"POST", "/v1/recovery/facts", change, nil, changes, s.postRecoveryFacts},
		{"PUT", "/v1/recovery", change, nil, changes, s.putRecovery},
		{"DELETE", "/v1/recovery", change, nil, changes, s.deleteRecovery},
		{"GET", "/v1/snapshot", look, nil, nil, s.getSnapshot},
		{"POST", "/v1/snapshot", change, nil, changes, s.postSnapshot},
		{"POST", "/v1/rollout", change, nil, changes, s.postRollout},
		{"PUT", "/v1/rollout/state", change, nil, changes, s.putRolloutState},
	}
}

func (s *Server) getStatus(request) (response, error) {
	newest, err := s.statuses.newest(s.opt.Backend)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, newest}, nil
}

func (s *Server) getChecks(request) (response, error) {
	return response{http.StatusOK, s.opt.Backend.Checks().complete()}, nil
}

func (s *Server) getHistory(r request) (response, error) {
	limit := DefaultHistory
	if text := r.query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxHistory {
			return response{}, badRequest("ask for 1 to "+strconv.Itoa(MaxHistory)+" lines",
				"cannot read the history: limit: %q is out of bounds", shorten(text))
		}
		limit = n
	}
	lines, err := s.opt.Backend.History(r.ctx, limit)
	old := errors.Is(err, ErrNotNewest)
	if err != nil && !old {
		return response{}, err
	}
	return response{http.StatusOK, History{APIVersion: APIVersion, Lines: orEmpty(lines), NotNewest: old}}, nil
}

// getBootstrap returns why a bootstrap would be refused.
func (s *Server) getBootstrap(r request) (response, error) {
	if err := s.opt.Backend.MayBootstrap(r.ctx); err != nil {
		return response{}, err
	}
	return response{http.StatusOK, Done{By: r.by}}, nil
}

func (s *Server) postBootstrap(r request) (response, error) {
	var body bootstrapBody
	if err := decode(r.body, &body, bootstrapHint); err != nil {
		return response{}, err
	}
	if name := s.opt.Backend.Status().Cluster.Name; body.Confirm != "" && body.Confirm != name {
		return response{}, &Error{
			Status: http.StatusConflict, Code: CodeConflict,
			Message: "cannot bootstrap: this host belongs to the cluster " + strconv.Quote(name) +
				", not " + strconv.Quote(shorten(body.Confirm)),
			Hint: "check that this is the host you mean: quorumctl status",
		}
	}
	if err := s.opt.Backend.Bootstrap(r.ctx, r.by); err != nil {
		return response{}, err
	}
	return response{http.StatusAccepted, Done{By: r.by}}, nil
}

func (s *Server) putPause(r request) (response, error) {
	var body pauseBody
	if err := decode(r.body, &body, pauseHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	pause, err := s.opt.Backend.Pause(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, pause}, nil
}

func (s *Server) deletePause(r request) (response, error) {
	if err := s.opt.Backend.Resume(r.ctx, r.by); err != nil {
		return response{}, err
	}
	return response{http.StatusOK, Done{By: r.by}}, nil
}

func (s *Server) postRelease(r request) (response, error) {
	var body releaseBody
	if err := decode(r.body, &body, releaseHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	if err := s.opt.Backend.ReleaseOp(r.ctx, req, r.by); err != nil {
		return response{}, err
	}
	return response{http.StatusOK, Done{By: r.by}}, nil
}

func (s *Server) putRemoval(r request) (response, error) {
	var body removalBody
	if err := decode(r.body, &body, removalHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	m, err := s.opt.Backend.RemoveMember(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, m}, nil
}

func (s *Server) putMaintenance(r request) (response, error) {
	var body maintenanceBody
	if err := decode(r.body, &body, maintenanceHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	m, err := s.opt.Backend.AskMaintenance(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, m}, nil
}

func (s *Server) deleteMaintenance(r request) (response, error) {
	if err := s.opt.Backend.EndMaintenance(r.ctx, r.by); err != nil {
		return response{}, err
	}
	return response{http.StatusOK, Done{By: r.by}}, nil
}

func (s *Server) postRollout(r request) (response, error) {
	var body rolloutBody
	if err := decode(r.body, &body, rolloutHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	rollout, err := s.opt.Backend.StartRollout(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusAccepted, rollout.complete()}, nil
}

func (s *Server) putRolloutState(r request) (response, error) {
	var body rolloutStateBody
	if err := decode(r.body, &body, rolloutStateHint); err != nil {
		return response{}, err
	}
	state, err := body.state()
	if err != nil {
		return response{}, err
	}
	rollout, err := s.opt.Backend.SetRollout(r.ctx, state, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, rollout.complete()}, nil
}
