// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package words_test

import (
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/words"
)

func TestWhatNobodyKnowsOfAWayIsNoFaultOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer, client string
		want         words.Word
	}{
		{"answers", "answers", words.Word{Text: "≤ 0.5 ms", Tone: words.Good}},
		{"", "", words.Word{Text: "not known", Tone: words.Plain}},
		{"", "answers", words.Word{Text: "peer not known", Tone: words.Plain}},
		{"answers", "", words.Word{Text: "client not known", Tone: words.Plain}},
		{"refused", "refused", words.Word{Text: "refused", Tone: words.Bad}},
		{"refused", "", words.Word{Text: "peer refused", Tone: words.Bad}},
		{"", "silent", words.Word{Text: "client silent", Tone: words.Bad}},
		{"answers", "silent", words.Word{Text: "client silent", Tone: words.Bad}},
		{"refused", "silent", words.Word{Text: "peer refused, client silent", Tone: words.Bad}},
	} {
		sees := []control.Sight{{MemberID: "b", Peer: c.peer, Client: c.client, RTTSeconds: 0.0005}}
		if got := words.Way("a", sees, "b"); got != c.want {
			t.Errorf("peer %q, client %q: %+v, want %+v", c.peer, c.client, got, c.want)
		}
	}
}

func TestAMemberThatIsLostIsShownSoBeforeItsPortsAreSaidToBeOtherwise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer, client string
		want         words.Word
	}{
		{"answers", "answers", words.Word{Text: "lost", Tone: words.Bad}},
		{"", "", words.Word{Text: "lost", Tone: words.Bad}},
		{"refused", "refused", words.Word{Text: "refused", Tone: words.Bad}},
		{"unreachable", "answers", words.Word{Text: "peer unreachable", Tone: words.Bad}},
	} {
		sees := []control.Sight{{MemberID: "b", Peer: c.peer, Client: c.client, RTTSeconds: 0.00025, Lost: true}}
		if got := words.Way("a", sees, "b"); got != c.want {
			t.Errorf("peer %q, client %q: %+v, want %+v", c.peer, c.client, got, c.want)
		}
		if words.ReachesAll(sees, []string{"b"}) {
			t.Errorf("peer %q, client %q: it is said to be reached", c.peer, c.client)
		}
	}
}
