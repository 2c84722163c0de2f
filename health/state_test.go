// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"testing"
)

func TestAStateIsParsedFromItsName(t *testing.T) {
	t.Parallel()
	for s := Unknown; s <= Failed; s++ {
		data, err := json.Marshal(map[State]State{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var back map[State]State
		if err := json.Unmarshal(data, &back); err != nil || back[s] != s || len(back) != 1 {
			t.Errorf("%s came back from %s as %v, %v", s, data, back, err)
		}
	}
	if Stalled.String() != "STALLED" || Unknown.String() != "UNKNOWN" {
		t.Errorf("names are %s and %s", Stalled, Unknown)
	}
}

func TestAnUnknownNameOrValueIsRefusedAndReadAsUnknown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "ok", "FINE", "STATE(9)"} {
		if s, err := ParseState(name); err == nil {
			t.Errorf("%q is read as %s", name, s)
		}
		s := Failed
		if err := s.UnmarshalText([]byte(name)); err != nil || s != Unknown {
			t.Errorf("%q in a document is read as %s, %v", name, s, err)
		}
	}
	if data, err := json.Marshal(State(9)); err == nil {
		t.Errorf("state 9 is written as %s", data)
	}
}

func TestBadOutweighsUnknownAndUnknownOutweighsGood(t *testing.T) {
	t.Parallel()
	order := []State{OK, Unknown, Warm, Qualifying, Slow, Stalled, Failed}
	for i, light := range order {
		for k, heavy := range order {
			if heavy.WorseThan(light) != (k > i) {
				t.Errorf("%s.WorseThan(%s) is %v", heavy, light, k <= i)
			}
		}
	}
}
