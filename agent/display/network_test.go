// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display_test

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
)

func TestUnknownPortStateIsNotShownAsAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer, client record.PortState
		want         display.Styled
	}{
		{"answers", "answers", display.Styled{Text: "≤ 0.5 ms", Tone: display.Good}},
		{"", "", display.Styled{Text: "not known", Tone: display.Plain}},
		{"", "answers", display.Styled{Text: "peer not known", Tone: display.Plain}},
		{"answers", "", display.Styled{Text: "client not known", Tone: display.Plain}},
		{"refused", "refused", display.Styled{Text: "refused", Tone: display.Bad}},
		{"refused", "", display.Styled{Text: "peer refused", Tone: display.Bad}},
		{"", "silent", display.Styled{Text: "client silent", Tone: display.Bad}},
		{"answers", "silent", display.Styled{Text: "client silent", Tone: display.Bad}},
		{"refused", "silent", display.Styled{Text: "peer refused, client silent", Tone: display.Bad}},
	} {
		sees := []record.Reachability{{MemberID: 0xb, Peer: c.peer, Client: c.client, RTTSeconds: 0.0005}}
		if got := display.Reachability("a", sees, "b"); got != c.want {
			t.Errorf("peer %q, client %q: %+v, want %+v", c.peer, c.client, got, c.want)
		}
	}
}

func TestLostMemberIsShownBeforeTheStatesOfItsPorts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer, client record.PortState
		want         display.Styled
	}{
		{"answers", "answers", display.Styled{Text: "lost", Tone: display.Bad}},
		{"", "", display.Styled{Text: "lost", Tone: display.Bad}},
		{"refused", "refused", display.Styled{Text: "refused", Tone: display.Bad}},
		{"unreachable", "answers", display.Styled{Text: "peer unreachable", Tone: display.Bad}},
	} {
		sees := []record.Reachability{
			{MemberID: 0xb, Peer: c.peer, Client: c.client, RTTSeconds: 0.00025, LostSince: time.Unix(1, 0)},
		}
		if got := display.Reachability("a", sees, "b"); got != c.want {
			t.Errorf("peer %q, client %q: %+v, want %+v", c.peer, c.client, got, c.want)
		}
		if display.ReachesAll(sees, []string{"b"}) {
			t.Errorf("peer %q, client %q: it counts as reached", c.peer, c.client)
		}
	}
}
