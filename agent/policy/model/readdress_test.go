// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"
)

func TestNeverTwoMembersHaveUnverifiedURLsInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	for _, s := range []readdressScope{
		{changed: 1},
		{changed: 2},
		{changed: 3},
		{changed: 2, faults: 1},
		{changed: 1, faults: 2}, // such as an undo while another voter is down
		{changed: 2, https: true},
		{changed: 2, faults: 1, https: true},
	} {
		broken, states := s.explore()
		t.Logf("%d changed URLs, %d faults, https %t: %d states", s.changed, s.faults, s.https, states)
		if broken != "" {
			t.Fatalf("%+v: %s", s, broken)
		}
	}
}

func TestEveryMistakeInAReaddressBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for mistake, promise := range map[string]string{
		"the new URL is not verified":                  "an operation ends only after the new URL is verified",
		"a record is published before the connection":  "an operation ends only after the new URL is verified",
		"a host without an agent counts as connected":  "an operation ends only after the new URL is verified",
		"ending the request cancels an updated URL":    "an operation ends only after the new URL is verified",
		"the environment is not written":               "every request ends",
		"a voter is stopped while another one is down": "one member at a time is down",
		"the request is not required":                  "no change without a request",
		"a member is recognized by its URL alone":      "a changed URL changes no member",
		"a step does not confirm the lock":             "no change without the lock",
		"the member list is ignored":                   "every request ends",
		"the other voters' URLs are not checked first": "two members have unverified URLs",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := readdressScope{changed: 2, faults: 1, mistake: mistake}
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}

func TestAnUndoWhileAnotherVoterIsDownIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	s := readdressScope{changed: 1, faults: 2, mistake: "answers about the previous URL count after an undo"}
	broken, states := s.explore()
	if !strings.HasPrefix(broken, "an operation ends only after the new URL is verified") {
		t.Errorf("%d states: broke %q", states, broken)
	}
}

func TestEveryMistakeInAChangeToHTTPSBreaksItsPromise(t *testing.T) {
	t.Parallel()
	const (
		without  = "no https while a member has no certificate"
		verified = "an operation ends only after the new URL is verified"
	)
	for mistake, promise := range map[string]string{
		"a member without a certificate is ignored":               without,
		"the configuration counts instead of the running process": without,
		"the certificate's address is not checked":                "no https with an unsuitable certificate",
		"an active connection counts as an answer":                verified,
		"the other voters' URLs are not checked first":            "two members have unverified URLs",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := readdressScope{changed: 2, faults: 1, mistake: mistake, https: true}
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}
