// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/internal/errtext"
)

func (s *Server) postTransfer(r request) (response, error) {
	req, err := read[control.TransferRequest](r.body, transferText, validateTransfer)
	if err != nil {
		return response{}, err
	}
	if err := s.opt.Backend.ProbeNow(r.ctx); err != nil { // the current leader must be known
		return response{}, fmt.Errorf("%s: %w", transferText.cannot, err)
	}
	out, err := s.opt.Backend.TransferLeadership(r.ctx, req, r.by)
	return response{http.StatusAccepted, completeTransfer(out)}, err
}

// validateTransfer checks only the form. The policy decides whether leadership can be transferred to that host.
func validateTransfer(r *control.TransferRequest) error {
	if !isPrintable(r.Host) || utf8.RuneCountInString(r.Host) > maxMemberName {
		return badRequest("use a name or ID that quorumctl status shows", "%s: host: %q is not a name or ID",
			transferText.cannot, errtext.Shorten(r.Host))
	}
	if strings.TrimSpace(r.Reason) == "" {
		r.Reason = ""
		return nil
	}
	return checkReason(&r.Reason, transferText)
}

func completeTransfer(t control.Transfer) control.Transfer {
	t.APIVersion, t.Steps, t.Warnings = control.APIVersion, orEmpty(t.Steps), orEmpty(t.Warnings)
	return t
}
