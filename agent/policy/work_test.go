// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// The test repeats the declaration, because a typo there could change what happens to an etcd that is down.
func TestEveryKindOfWorkIsDeclaredAsExpected(t *testing.T) {
	t.Parallel()
	want := [...]work{
		{"maintenance", true, false, true, false, false, false, false, false},
		{"restart", false, false, false, true, false, false, true, true},
		{"reboot", false, true, true, false, false, false, false, true},
		{"command", false, false, false, true, true, true, false, true},
		{"readdress", false, false, false, true, false, false, true, true},
		{"defrag", false, false, false, true, false, true, true, true},
	}
	if workKinds() != want {
		t.Errorf("work is declared as\n%+v\nwant\n%+v", workKinds(), want)
	}
	for i, w := range Works() {
		if w != want[i].kind || w.info() != want[i] || w.RunsProgram() != want[i].program ||
			w.RunsJob() != want[i].job || w.NeedsMember() != want[i].needsMember {
			t.Errorf("%s returns %+v", w, w.info())
		}
	}
	if got := Work("dance").info(); got != (work{kind: "dance"}) {
		t.Errorf("undeclared work returns %+v", got)
	}
}
