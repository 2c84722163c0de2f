// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestAPortOfANewerVersionIsNeitherReachedNorBroken(t *testing.T) {
	t.Parallel()
	if s := record.PortState("of a later version"); s.Accepts() || s.Broken() {
		t.Error("an unknown state counts as known")
	}
}

func TestAMemberIsReachedIfOnePortAcceptsAndLostOnlySinceATime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of           record.Reachability
		lost, unsure bool
	}{
		"one port accepts":           {record.Reachability{Peer: "refused", Client: "silent"}, false, false},
		"no port accepts":            {record.Reachability{Peer: record.PortRefused}, false, true},
		"a state of a later version": {record.Reachability{Client: "of a later version"}, false, true},
		"lost, although the states are old": {
			record.Reachability{Peer: "answers", LostSince: time.Unix(1, 0)}, true, false,
		},
	} {
		if c.of.Lost() != c.lost || c.of.Unsure() != c.unsure {
			t.Errorf("%s: lost %t, unsure %t", name, c.of.Lost(), c.of.Unsure())
		}
	}
	for link, known := range map[string]bool{record.LinkUp: true, record.LinkNone: true, "": false, "later": false} {
		if got := (record.Reachability{Link: link}).LinkKnown(); got != known {
			t.Errorf("link %q: known %t", link, got)
		}
	}
}
