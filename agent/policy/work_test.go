// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// It is a list of its own: a slip in the declaration decides what becomes of an etcd that is down.
func TestEveryKindOfWorkIsWhatItShallBe(t *testing.T) {
	t.Parallel()
	want := [...]work{
		{"maintenance", true, false, true, false, false, false, false},
		{"restart", false, false, false, true, false, true, true},
		{"reboot", false, true, true, false, false, false, true},
		{"command", false, false, false, true, true, false, true},
	}
	if workKinds() != want {
		t.Errorf("work is declared as\n%+v\nand shall be\n%+v", workKinds(), want)
	}
	for i, w := range Works() {
		if w != want[i].kind || w.info() != want[i] || w.RunsProgram() != want[i].program ||
			w.NeedsMember() != want[i].needsMember {
			t.Errorf("%s gives %+v", w, w.info())
		}
	}
	if got := Work("dance").info(); got != (work{kind: "dance"}) {
		t.Errorf("work that nobody has declared gives %+v", got)
	}
}
