// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestARolloutContinuesOnlyAfterAHostIsProperlyBack(t *testing.T) {
	t.Parallel()
	upgrade := RolloutProgress{Host: "n2", Ongoing: true, Waiting: 1, Member: true, Wants: "3.6.5", Runs: "3.6.5"}
	for what, c := range map[string]struct {
		edit func(*RolloutProgress)
		step Step
		want RolloutEnd
	}{
		"it is back": {func(*RolloutProgress) {}, Step{Outcome: Cycled}, RolloutEnd{HostDone: true}},
		"it is back, and was the last host": {
			func(r *RolloutProgress) { r.Waiting = 0 }, Step{Outcome: Cycled}, RolloutEnd{HostDone: true, Done: true},
		},
		"it was the last host, and the rollout was aborted": {
			func(r *RolloutProgress) { r.Waiting, r.Ongoing = 0, false },
			Step{Outcome: Cycled},
			RolloutEnd{HostDone: true},
		},
		"it was cancelled": {
			func(*RolloutProgress) {}, Step{Outcome: Cancelled}, RolloutEnd{Stopped: "n2's request was cancelled"},
		},
		"its hook has failed": {
			func(*RolloutProgress) {},
			Step{Outcome: HookFailed, Why: "drain: exit 1"},
			RolloutEnd{Stopped: "on n2: drain: exit 1"},
		},
		"its command has failed": {
			func(*RolloutProgress) {},
			Step{Outcome: CommandFailed, Why: "upgrade: exit 2"},
			RolloutEnd{Stopped: "on n2: upgrade: exit 2"},
		},
		"an operator had stopped its etcd": {func(*RolloutProgress) {}, Step{Outcome: UnitStopped}, RolloutEnd{}},
		"it came back with its former version": {
			func(r *RolloutProgress) { r.Runs = "3.6.4" },
			Step{Outcome: Cycled},
			RolloutEnd{Stopped: "n2 came back with etcd 3.6.4, not 3.6.5"},
		},
		"it came back with a pre-release version": {
			func(r *RolloutProgress) { r.Runs = "3.6.5-rc.0" },
			Step{Outcome: Cycled},
			RolloutEnd{Stopped: "n2 came back with etcd 3.6.5-rc.0, not 3.6.5"},
		},
		"neither is a version": {
			func(r *RolloutProgress) { r.Wants, r.Runs = "ours", "theirs" },
			Step{Outcome: Cycled},
			RolloutEnd{Stopped: "n2 came back with etcd theirs, not ours"},
		},
		"its version is unknown": {
			func(r *RolloutProgress) { r.Runs = "" },
			Step{Outcome: Cycled},
			RolloutEnd{Stopped: "n2 came back with etcd of unknown version, not 3.6.5"},
		},
		"it has no member": {
			func(r *RolloutProgress) { r.Runs, r.Member = "", false },
			Step{Outcome: Cycled},
			RolloutEnd{HostDone: true},
		},
		"no version is required": {
			func(r *RolloutProgress) { r.Wants = "" }, Step{Outcome: Cycled}, RolloutEnd{HostDone: true},
		},
	} {
		progress := upgrade
		c.edit(&progress)
		if got := RolloutAfter(progress, c.step); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
