// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// removalBackend returns a backend whose removal ends with that code and text: each read after the request returns the
// next of these reasons, and the read after the last reason returns the end.
func removalBackend(t *testing.T, code policy.ReasonCode, text string, waits ...control.Reason) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.status.Reasons = nil
	d.onRead = func(_ int, s *control.Status) {
		r := s.Removal
		switch {
		case r == nil:
		case len(waits) > 0:
			s.Time, s.Reasons, waits = s.Time.Add(time.Second), waits[:1], waits[1:]
		default:
			s.LastRemoval = &control.RemovalEnd{
				RequestedRemoval: r.RequestedRemoval, Ended: s.Time, Code: code, Text: text,
			}
			s.Removal = nil
		}
	}
	return d
}

func TestMemberRemoveShowsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	waits := []control.Reason{
		{Code: "MEMBER_LIVE", Text: "voter n3 has not answered for 21s; it counts as gone after 30s"},
		{Code: "LOCK_HELD", Text: "held by n1"},
	}
	done, _ := serve(t, removalBackend(t, policy.Removed, "removal of member n3 has ended", waits...))
	golden(t, "member-remove.golden",
		transcript(t, done, "member remove n3 --yes --reason 'scrapped'", "member list"))
	late, _ := serve(t, removalBackend(t, policy.Cancelled,
		"it expired before it could begin; LOCK_HELD: held by n1", waits...))
	golden(t, "member-remove-late.golden",
		transcript(t, late, "member remove n3 --yes --reason 'scrapped' --timeout 3s"))
	back, _ := serve(t, removalBackend(t, "MEMBER_LIVE", "voter n3 answers"))
	golden(t, "member-remove-back.golden", transcript(t, back, "member remove n3 --yes --reason 'scrapped'"))
}

func TestWaitEndsIfQuorumdLosesTheRemoval(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.onRead = func(_ int, s *control.Status) {
		s.Time, s.Removal = s.Time.Add(lostAfter/2), nil
	}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "member", "remove", "n3", "--yes", "--reason", "x")
	if r.code != exitFault || !strings.Contains(r.stderr,
		"cannot wait until n3 is removed: quorumd has lost the request") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestMemberRemoveNoWaitAndAlreadyRemoved(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	socket, _ := serve(t, d)
	golden(t, "member-remove-no-wait.golden", transcript(t, socket,
		"member remove n3 --yes --reason 'scrapped' --live --no-wait",
		"member remove n3 --yes --reason 'scrapped' --no-wait -o yaml"))
	if got := d.requests(); got != "remove n3 within 5m0s, live true: scrapped; "+
		"remove n3 within 5m0s, live false: scrapped" {
		t.Errorf("asked %q", got)
	}
	d.removed = true
	r := quorumctl(t, socket, "member", "remove", "n3", "--yes", "--reason", "scrapped")
	if r.code != exitOK || r.stdout != "n3 (fd422379fda50e48) is already removed\n" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestMemberRemoveCompletesMembersOfOtherHosts(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "steady"))
	r := quorumctl(t, socket, "__complete", "member", "remove", "")
	if r.code != exitOK || strings.Contains(r.stdout, "n1\n") || !strings.Contains(r.stdout, "n3\n") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
