// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// remove requests the removal of another host's member. It returns the reason if the request is refused, or "".
func (h *host) remove(other *host, live bool) string {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(h.w.t.Context(), bound)
	defer cancel()
	req := control.RemovalRequest{
		Member: other.Options.Name, Reason: "scrapped", Live: live, For: control.Duration(bound),
	}
	if _, err := h.Client.RemoveMember(ctx, req); err != nil {
		return err.Error()
	}
	return ""
}

func (w *world) waitRemoved(by *host) {
	w.t.Helper()
	w.eventually("the member is removed", func() bool {
		s, ok := by.status()
		return ok && s.Op == nil && s.Removal == nil && s.LastRemoval != nil &&
			s.LastRemoval.Code == policy.Removed
	})
}

func TestAVoterGoneForGoodIsRemovedAndANeededOneIsNot(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	if got := n1.remove(n3, false); !strings.Contains(got, "voter n3 answers") {
		t.Errorf("a live voter: %q", got)
	}
	n1.killForGood(n3)
	if got := n1.remove(n2, true); !strings.Contains(got, "voter n2 answers, and is needed") {
		t.Errorf("a live voter while another is down: %q", got)
	}
	if got := n1.remove(n1, true); !strings.Contains(got, "this host's own member") {
		t.Errorf("its own member: %q", got)
	}
	if got := n1.remove(n3, false); got != "" {
		t.Fatalf("the removal of the dead member: %q", got)
	}
	w.waitRemoved(n1)
	if !w.has(2, 0) {
		t.Errorf("the members are %+v", w.members())
	}
	if got := n1.remove(n3, false); got != "" {
		t.Errorf("asked again: %q", got)
	}
	n2.signalEtcd(syscall.SIGSTOP)
	w.eventually("n1 has no quorum", func() bool { return n1.hasReason(policy.NoQuorum) })
	if got := n1.remove(n2, true); !strings.Contains(got, "cannot be reached") {
		t.Errorf("without a quorum: %q", got)
	}
	n2.signalEtcd(syscall.SIGCONT)
	w.verify(2, 0)
}

func TestARemovedLiveLeaderTransfersLeadershipFirstStopsAndMayRejoin(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n3 := w.hosts[0], w.hosts[2]
	w.lead(n3)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	w.eventually("the removal begins", func() bool { return n1.remove(n3, true) == "" })
	w.waitRemoved(n1)
	lines, err := n1.Client.History(ctx, control.MaxHistory)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, line := range lines {
		if line.HostName == "n1" {
			codes = append(codes, line.Code)
		}
	}
	if got := strings.Join(codes, " "); !strings.Contains(got,
		"begin-removal transfer-leadership set-phase remove-member REMOVED") {
		t.Errorf("the steps of n1 are %s", got)
	}
	w.eventually("n3 is a voter again", func() bool { return w.has(3, 0) })
	w.verify(3, 0)
}

// seesDown reports whether a host observes that another host's member does not answer.
func (h *host) seesDown(other *host) bool {
	s, ok := h.status()
	if !ok {
		return false
	}
	for _, m := range s.Cluster.Members {
		if m.Name == other.Options.Name {
			return !m.Live
		}
	}
	return false
}

func TestARemovalCompletesAlthoughItsAgentIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"after take-lock", "after begin-removal", "after set-phase/removing",
		"before remove-member", "after remove-member",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := cycleWorld(t, nil)
			n1, n3 := w.hosts[0], w.hosts[2]
			n1.killForGood(n3)
			n1.stopAt(at)
			if got := n1.remove(n3, false); got != "" {
				t.Fatal(got)
			}
			n1.waitStopped()
			n1.crash(at, agentOnly)
			n1.resume()
			w.start(n1)
			w.waitRemoved(n1)
			w.verify(2, 0)
		})
	}
}

func TestARemovalEndedByAnotherAgentIsNotRestartedWithoutARequest(t *testing.T) {
	t.Parallel()
	w := cycleWorld(t, nil)
	n1, n3 := w.hosts[0], w.hosts[2]
	n1.killForGood(n3)
	n1.stopAt("after begin-removal")
	if got := n1.remove(n3, false); got != "" {
		t.Fatal(got)
	}
	n1.waitStopped()
	n1.crash("after begin-removal", agentOnly)
	w.eventually("n2 has ended the operation", func() bool { return w.absent(w.keys().Op()) })
	if !w.has(3, 0) {
		t.Errorf("the members are %v", w.members())
	}
	n1.resume()
	w.start(n1)
	w.eventually("n1 reports that its removal was cancelled", func() bool {
		s, ok := n1.status()
		return ok && s.LastRemoval != nil && s.LastRemoval.Code == policy.Cancelled
	})
	if !w.has(3, 0) {
		t.Errorf("the members are %v", w.members())
	}
	w.eventually("n1 sees that n3 does not answer", func() bool { return n1.seesDown(n3) })
	w.eventually("the removal begins", func() bool { return n1.remove(n3, false) == "" })
	w.waitRemoved(n1)
	w.verify(2, 0)
}

// killForGood kills the agent and the etcd of another host, and waits until this host reports its member as down. Only
// the test can start them again.
func (h *host) killForGood(other *host) {
	h.w.t.Helper()
	if err := other.end(); err != nil {
		h.w.t.Fatal(err)
	}
	other.running = false
	h.w.eventually(h.Options.Name+" sees that "+other.Options.Name+" does not answer", func() bool {
		return h.seesDown(other)
	})
}
