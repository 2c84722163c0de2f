// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The longest mute, and the default.
const (
	MaxMute     = 30 * 24 * time.Hour
	DefaultMute = 4 * time.Hour
)

// CodeNotMuted means that there is no mute to end.
const CodeNotMuted = "NOT_MUTED"

// maxCode is the longest code, in bytes.
const maxCode = 64

// MuteRequest requests that a finding be muted for a while.
type MuteRequest struct {
	Code   string
	Reason string        // required, one line
	For    time.Duration // over 0, at most MaxMute
}

// Mute is a muted finding.
type Mute struct {
	Code   string    `json:"code"`
	State  string    `json:"state"` // a worse state ends the mute
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// muteBody is a MuteRequest on the wire.
type muteBody struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
	For    string `json:"for,omitempty"`
}

const (
	muteHint    = `send {"code": "<code>", "reason": "<why>", "for": "4h"}`
	muteForHint = "use a duration over 0 and at most 720h, and mute it again when it ends"
)

func (b muteBody) request() (MuteRequest, error) {
	const what = "cannot mute"
	code, err := checkCode(b.Code, what)
	if err != nil {
		return MuteRequest{}, err
	}
	reason, err := oneLine(b.Reason, what)
	if err != nil {
		return MuteRequest{}, err
	}
	d, err := lasting(b.For, what, bounds{1, MaxMute, DefaultMute, muteForHint})
	if err != nil {
		return MuteRequest{}, err
	}
	return MuteRequest{Code: code, Reason: reason, For: d}, nil
}

func checkCode(code, what string) (string, error) {
	foreign := func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	if code == "" || len(code) > maxCode || strings.ContainsFunc(code, foreign) {
		return "", badRequest("use a code that quorumctl codes lists", "%s: unknown code %q", what, shorten(code))
	}
	return code, nil
}

func (s *Server) putMute(r request) (response, error) {
	var body muteBody
	if err := decode(r.body, &body, muteHint); err != nil {
		return response{}, err
	}
	req, err := body.request()
	if err != nil {
		return response{}, err
	}
	m, err := s.opt.Backend.Mute(r.ctx, req, r.by)
	if err != nil {
		return response{}, err
	}
	return response{http.StatusOK, m}, nil
}

func (s *Server) deleteMute(r request) (response, error) {
	code, err := checkCode(r.query.Get("code"), "cannot unmute")
	if err != nil {
		return response{}, err
	}
	if err := s.opt.Backend.Unmute(r.ctx, code, r.by); err != nil {
		return response{}, err
	}
	return response{http.StatusOK, Done{By: r.by}}, nil
}

// Mute mutes an advisory finding, for DefaultMute unless the request sets a duration. It returns the recorded mute.
func (c *Client) Mute(ctx context.Context, req MuteRequest) (Mute, error) {
	body := muteBody{Code: req.Code, Reason: req.Reason}
	if req.For != 0 {
		body.For = req.For.String()
	}
	var m Mute
	err := c.do(ctx, http.MethodPut, "/v1/mute", body, &m)
	return m, err
}

// Unmute ends the mute of a code.
func (c *Client) Unmute(ctx context.Context, code string) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodDelete, "/v1/mute?code="+url.QueryEscape(code), nil, &d)
	return d, err
}
