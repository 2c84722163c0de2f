// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/quorumd/quorumd/health"
)

// Maximum and default duration of a mute.
const (
	MaxMute     = 30 * 24 * time.Hour
	DefaultMute = 4 * time.Hour
)

// CodeNotMuted means that there is no mute to end.
const CodeNotMuted = "NOT_MUTED"

// MuteRequest requests that a finding be muted for a limited time.
type MuteRequest struct {
	Code   string   `json:"code"`
	Reason string   `json:"reason"`        // required, one line
	For    Duration `json:"for,omitempty"` // over 0, at most MaxMute; DefaultMute if absent
}

// Mute mutes an advisory finding, for DefaultMute unless the request sets a duration. It returns the recorded mute.
func (c *Client) Mute(ctx context.Context, req MuteRequest) (health.Mute, error) {
	var m health.Mute
	err := c.do(ctx, http.MethodPut, "/v1/mute", req, &m)
	return m, err
}

// Unmute ends the mute of a code. Without a mute it fails with CodeNotMuted.
func (c *Client) Unmute(ctx context.Context, code string) (Done, error) {
	var d Done
	err := c.do(ctx, http.MethodDelete, "/v1/mute?code="+url.QueryEscape(code), nil, &d)
	return d, err
}
