// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"

	"github.com/quorumd/quorumd/agent/control"
)

func (s *Server) getRetire(r request) (response, error) {
	hosts, err := s.opt.Backend.RetiredHosts(r.ctx)
	return response{http.StatusOK, completeRetiredHosts(hosts)}, err
}

func (s *Server) postRetire(r request) (response, error) {
	req, err := read[control.RetireRequest](r.body, retireText, validateRetire)
	if err != nil {
		return response{}, err
	}
	if err := s.opt.Backend.ProbeNow(r.ctx); err != nil { // the plan needs the current state
		return response{}, fmt.Errorf("%s: %w", retireText.cannot, err)
	}
	retirement, err := s.opt.Backend.Retire(r.ctx, req, r.by)
	return response{http.StatusAccepted, completeRetirement(retirement)}, err
}
