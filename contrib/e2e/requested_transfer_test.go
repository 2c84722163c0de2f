// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// transfer asks this host's agent to transfer leadership to req.Host, or to the best voter if that is empty. It returns
// the answer, and the reason if the request is refused.
func (h *host) transfer(req control.TransferRequest) (control.Transfer, string) {
	h.w.t.Helper()
	req.Reason = "a test"
	return ask(h, req, h.Client.TransferLeadership)
}

func TestLeadershipIsTransferredOnRequestWithoutAFailedWrite(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	load := w.retrying(50)
	moved := 0
	for round := range 2 {
		for i, by := range w.hosts { // the asked host is the leader, its successor, or a third voter
			to := w.hosts[(i+round)%len(w.hosts)]
			var asked control.Transfer
			w.eventually(by.Options.Name+" accepts the request", func() bool {
				var refused string
				asked, refused = by.transfer(control.TransferRequest{Host: to.Options.Name})
				return refused == ""
			})
			if asked.Unchanged {
				continue
			}
			moved++
			w.eventually("leadership is transferred to "+to.Options.Name, func() bool {
				s, ok := by.status()
				return ok && s.Transfer == nil && s.LastTransfer != nil && s.LastTransfer.Since.Equal(asked.Since)
			})
			s, _ := by.status()
			took := s.LastTransfer.Ended.Sub(asked.Since)
			t.Logf("from %s to %s in %s, asked of %s", asked.From, to.Options.Name, took.Round(time.Millisecond),
				by.Options.Name)
			if s.LastTransfer.Code != "" || !to.leads() {
				t.Errorf("the transfer ended with %+v; %s leads: %t", s.LastTransfer, to.Options.Name, to.leads())
			}
		}
	}
	if moved < 3 {
		t.Errorf("leadership moved only %d times", moved)
	}
	if same, refused := w.hosts[0].transfer(control.TransferRequest{Host: "n9"}); !strings.Contains(refused, "n9") {
		t.Errorf("an unknown host: %+v", same)
	}
	checkReport(t, load)
	w.eventually("no lock is held", func() bool {
		s, ok := w.hosts[0].status()
		return ok && s.Lock.Holder == "" && s.Op == nil
	})
	w.verify(3, 0)
}
