// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/internal/errtext"
	"github.com/quorumd/quorumd/agent/recovery"
)

// route is one method and path of the API.
type route struct {
	method string
	path   string
	access access
	params []string      // permitted parameters of the query
	slots  chan struct{} // limits the requests that wait for the backend; nil if the answer comes from memory
	handle func(request) (response, error)
}

// request is the part of an HTTP request that a handler uses.
type request struct {
	ctx   context.Context
	query url.Values
	body  io.Reader
	by    string // name of the caller
}

// response is a handler's answer. It is ignored if the handler also returns an error.
type response struct {
	status int
	body   any // a value to encode as JSON, or a *document
}

func (s *Server) routes() []route {
	reads := make(chan struct{}, s.limits.waiting)
	changes := make(chan struct{}, s.limits.waiting)
	return []route{
		{"GET", "/v1/status", accessRead, nil, nil, s.getStatus},
		{"GET", "/v1/checks", accessRead, nil, nil, s.getChecks},
		{"GET", "/v1/history", accessRead, []string{"limit"}, reads, s.getHistory},
		{"GET", "/v1/bootstrap", accessRead, nil, reads, s.getBootstrap},
		{"POST", "/v1/bootstrap", accessChange, nil, changes, s.postBootstrap},
		{"PUT", "/v1/pause", accessChange, nil, changes, s.putPause},
		{"DELETE", "/v1/pause", accessChange, nil, changes, s.deletePause},
		{"POST", "/v1/operation/release", accessChange, nil, changes, s.postRelease},
		{"PUT", "/v1/removal", accessChange, nil, changes, s.putRemoval},
		{"PUT", "/v1/maintenance", accessChange, nil, changes, s.putMaintenance},
		{"DELETE", "/v1/maintenance", accessChange, nil, changes, s.deleteMaintenance},
		{"PUT", "/v1/mute", accessChange, nil, changes, s.putMute},
		{"DELETE", "/v1/mute", accessChange, []string{"code"}, changes, s.deleteMute},
		{"POST", "/v1/recovery/facts", accessChange, nil, changes, s.postRecoveryFacts},
		{"PUT", "/v1/recovery", accessChange, nil, changes, s.putRecovery},
		{"DELETE", "/v1/recovery", accessChange, nil, changes, s.deleteRecovery},
		{"GET", "/v1/snapshot", accessRead, nil, nil, s.getSnapshot},
		{"POST", "/v1/snapshot", accessChange, nil, changes, s.postSnapshot},
		{"POST", "/v1/rollout", accessChange, nil, changes, s.postRollout},
		{"PUT", "/v1/rollout/state", accessChange, nil, changes, s.putRolloutState},
		{"GET", "/v1/cluster/resize", accessRead, nil, reads, s.getResize},
		{"POST", "/v1/cluster/resize", accessChange, nil, changes, s.postResize},
		{"GET", "/v1/retire", accessRead, nil, reads, s.getRetire},
		{"POST", "/v1/retire", accessChange, nil, changes, s.postRetire},
		{"POST", "/v1/leader/transfer", accessChange, nil, changes, s.postTransfer},
	}
}

func (s *Server) getStatus(request) (response, error) {
	newest, err := s.status.get(s.opt.Backend)
	return response{http.StatusOK, newest}, err
}

func (s *Server) getChecks(request) (response, error) {
	return response{http.StatusOK, completeChecks(s.opt.Backend.Checks())}, nil
}

func (s *Server) getHistory(r request) (response, error) {
	limit := control.DefaultHistory
	if text := r.query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > control.MaxHistory {
			return response{}, badRequest("ask for 1 to "+strconv.Itoa(control.MaxHistory)+" lines",
				"cannot read the history: limit: %q is not a valid number of lines", errtext.Shorten(text))
		}
		limit = n
	}
	lines, err := s.opt.Backend.History(r.ctx, limit)
	history := control.History{APIVersion: control.APIVersion, Lines: orEmpty(lines)}
	if errors.Is(err, control.ErrNotNewest) {
		history.NotNewest, err = true, nil
	}
	return response{http.StatusOK, history}, err
}

// getBootstrap reports whether a bootstrap would be refused, and why.
func (s *Server) getBootstrap(r request) (response, error) {
	s.opt.Backend.AwaitData(r.ctx)
	err := s.opt.Backend.MayBootstrap(r.ctx)
	return response{http.StatusOK, control.Done{By: r.by}}, err
}

func (s *Server) postBootstrap(r request) (response, error) {
	var req control.BootstrapRequest
	if err := decode(r.body, &req, bootstrapText); err != nil {
		return response{}, err
	}
	if name := s.opt.Backend.Status().Cluster.Name; req.Confirm != "" && req.Confirm != name {
		return response{}, &control.Error{
			Status: http.StatusConflict, Code: control.CodeConflict,
			Message: bootstrapText.cannot + ": this host belongs to the cluster " + strconv.Quote(name) +
				", not " + strconv.Quote(errtext.Shorten(req.Confirm)),
			Hint: "check that this is the host you mean: quorumctl status",
		}
	}
	s.opt.Backend.AwaitData(r.ctx)
	err := s.opt.Backend.Bootstrap(r.ctx, r.by)
	return response{http.StatusAccepted, control.Done{By: r.by}}, err
}

func (s *Server) putPause(r request) (response, error) {
	req, err := read(r.body, pauseText, validatePause)
	if err != nil {
		return response{}, err
	}
	pause, err := s.opt.Backend.Pause(r.ctx, req, r.by)
	return response{http.StatusOK, pause}, err
}

func (s *Server) deletePause(r request) (response, error) {
	err := s.opt.Backend.Resume(r.ctx, r.by)
	return response{http.StatusOK, control.Done{By: r.by}}, err
}

func (s *Server) postRelease(r request) (response, error) {
	req, err := read(r.body, releaseText, validateRelease)
	if err != nil {
		return response{}, err
	}
	err = s.opt.Backend.ReleaseOp(r.ctx, req, r.by)
	return response{http.StatusOK, control.Done{By: r.by}}, err
}

func (s *Server) putRemoval(r request) (response, error) {
	req, err := read(r.body, removalText, validateRemoval)
	if err != nil {
		return response{}, err
	}
	removal, err := s.opt.Backend.RemoveMember(r.ctx, req, r.by)
	return response{http.StatusOK, removal}, err
}

func (s *Server) putMaintenance(r request) (response, error) {
	req, err := read(r.body, maintenanceText, validateMaintenance)
	if err != nil {
		return response{}, err
	}
	maintenance, err := s.opt.Backend.RequestMaintenance(r.ctx, req, r.by)
	return response{http.StatusOK, maintenance}, err
}

func (s *Server) deleteMaintenance(r request) (response, error) {
	err := s.opt.Backend.EndMaintenance(r.ctx, r.by)
	return response{http.StatusOK, control.Done{By: r.by}}, err
}

func (s *Server) putMute(r request) (response, error) {
	req, err := read(r.body, muteText, validateMute)
	if err != nil {
		return response{}, err
	}
	mute, err := s.opt.Backend.Mute(r.ctx, req, r.by)
	return response{http.StatusOK, mute}, err
}

func (s *Server) deleteMute(r request) (response, error) {
	code := r.query.Get("code")
	if err := checkCode(code, "cannot unmute"); err != nil {
		return response{}, err
	}
	err := s.opt.Backend.Unmute(r.ctx, code, r.by)
	return response{http.StatusOK, control.Done{By: r.by}}, err
}

// postRecoveryFacts changes nothing. But a child process reads the whole log for the answer, so only users who may
// change things may request it.
func (s *Server) postRecoveryFacts(r request) (response, error) {
	facts, err := s.opt.Backend.RecoveryFacts(r.ctx)
	return response{http.StatusOK, facts}, err
}

func (s *Server) putRecovery(r request) (response, error) {
	plan, err := recovery.ReadPlan(r.body)
	if err != nil {
		return response{}, badRequest("send the file written by quorumctl recover plan", "%s",
			errtext.Shorten(err.Error()))
	}
	applied, err := s.opt.Backend.ApplyRecovery(r.ctx, plan, r.by)
	return response{http.StatusOK, applied}, err
}

func (s *Server) deleteRecovery(r request) (response, error) {
	abandoned, err := s.opt.Backend.AbandonRecovery(r.ctx, r.by)
	return response{http.StatusOK, abandoned}, err
}

func (s *Server) getSnapshot(request) (response, error) {
	return response{http.StatusOK, completeSnapshotJob(s.opt.Backend.SnapshotJob())}, nil
}

func (s *Server) postSnapshot(r request) (response, error) {
	req, err := read(r.body, snapshotText, validateSnapshot)
	if err != nil {
		return response{}, err
	}
	job, err := s.opt.Backend.StartSnapshot(r.ctx, req, r.by)
	return response{http.StatusAccepted, completeSnapshotJob(job)}, err
}

func (s *Server) postRollout(r request) (response, error) {
	req, err := read(r.body, rolloutText, validateRollout)
	if err != nil {
		return response{}, err
	}
	rollout, err := s.opt.Backend.StartRollout(r.ctx, req, r.by)
	return response{http.StatusAccepted, completeRollout(rollout)}, err
}

func (s *Server) putRolloutState(r request) (response, error) {
	req, err := read(r.body, rolloutStateText, validateRolloutState)
	if err != nil {
		return response{}, err
	}
	rollout, err := s.opt.Backend.SetRollout(r.ctx, req.State, r.by)
	return response{http.StatusOK, completeRollout(rollout)}, err
}
