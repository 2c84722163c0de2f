// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"encoding/json"
	"testing"
)

func TestStatesHaveSystemdsNames(t *testing.T) {
	t.Parallel()
	var zero State
	if zero != Unknown {
		t.Errorf("the zero value is %v", zero)
	}
	all := map[State]string{
		Unknown: "unknown", Inactive: "inactive", Activating: "activating", Active: "active",
		Deactivating: "deactivating", Failed: "failed",
	}
	for s, want := range all {
		text, err := json.Marshal(s)
		if err != nil || s.String() != want || string(text) != `"`+want+`"` {
			t.Errorf("%d is %v, in JSON %s, %v", s, s, text, err)
		}
		var back State
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Errorf("%s is read as %v, %v", text, back, err)
		}
	}
	if got := State(42).String(); got != "state(42)" {
		t.Error(got)
	}
	if err := new(State).UnmarshalText([]byte("dancing")); err == nil {
		t.Error("no error for an unknown state")
	}
}
