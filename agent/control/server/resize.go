// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"

	"github.com/quorumd/quorumd/agent/control"
)

func (s *Server) getResize(r request) (response, error) {
	size, err := s.opt.Backend.Size(r.ctx)
	return response{http.StatusOK, completeResize(size)}, err
}

func (s *Server) postResize(r request) (response, error) {
	req, err := read[control.ResizeRequest](r.body, resizeText, validateResize)
	if err != nil {
		return response{}, err
	}
	if err := s.opt.Backend.ProbeNow(r.ctx); err != nil { // the plan needs the current state
		return response{}, fmt.Errorf("%s: %w", resizeText.cannot, err)
	}
	size, err := s.opt.Backend.Resize(r.ctx, req, r.by)
	return response{http.StatusAccepted, completeResize(size)}, err
}
