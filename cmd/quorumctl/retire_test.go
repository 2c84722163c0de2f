// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// retiring returns a backend of three voters with the plan of the retirement of n3.
func retiring(t *testing.T) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.retirement = control.Retirement{
		Host: control.Retired{
			ID: "3", Name: "n3", PeerURL: "http://192.0.2.3:2380", Member: policy.RoleVoter,
			State: control.RetiredLeaves,
		},
		Voters: 3, FaultTolerance: 1, Size: &control.Size{Voters: 3, By: "root"},
		Steps: []policy.PlanStep{
			{Text: "n4 joins as a learner, catches up and becomes a voter", Voters: 4, Tolerance: 1},
			{Text: "n3" + leavesText, Voters: 3, Tolerance: 1, Final: true},
			{
				Text:   "n3 stays out of the cluster until the retirement is undone, and can be switched off",
				Voters: 3, Tolerance: 1,
			},
		},
	}
	return d
}

func TestRetireShowsItsPlanAndTheRetiredHosts(t *testing.T) {
	t.Parallel()
	d := retiring(t)
	socket, _ := serve(t, d)
	got := transcript(t, socket, "retire", "retire n3 --dry-run --reason 'end of lease'",
		"retire n3 --yes --reason 'end of lease'", "retire", "status", "retire n3 --undo --dry-run",
		"retire n3 --undo --yes",
		"retire -o json")
	left := retiring(t)
	left.status.Retired = []control.Retired{
		{ID: "3", Name: "n3", By: "root", Reason: "end of lease", Since: left.status.Time, State: control.RetiredLeft},
		{ID: "7", State: control.RetiredUnreadable},
	}
	for i := range left.status.Hosts {
		if left.status.Hosts[i].Name == "n3" {
			left.status.Hosts[i].Retired = control.RetiredLeft
		}
	}
	left.retirement.Unchanged, left.retirement.Host = true, left.status.Retired[0]
	again, _ := serve(t, left)
	got = append(got, transcript(t, again, "retire", "status", "retire n3 --dry-run --reason x",
		"retire n3 --undo --yes")...)
	golden(t, "retire.golden", got)
}

func TestReplaceShowsWhichHostJoins(t *testing.T) {
	t.Parallel()
	d := retiring(t)
	d.retirement.Host.Successor = "n4"
	socket, _ := serve(t, d)
	got := transcript(t, socket, "member replace n3 n4 --dry-run --reason 'end of lease'",
		"member replace n3 n4 --yes --reason 'end of lease'", "retire", "retire n3 --undo --yes")
	golden(t, "member-replace.golden", got)
	if want := "retire n3 by n4, undo false: end of lease"; !slices.Contains(d.requested, want) {
		t.Errorf("requested: %q", d.requested)
	}
	d = retiring(t)
	socket, _ = serve(t, d)
	refusesArguments(t, d, socket, "member replace n3 --yes --reason x", "member replace n3 n4 --yes",
		"member replace n3 n4 n5 --yes --reason x", "member replace n3 n4 --reason x",
		"member replace n3 n4 --yes --reason x --wait=-1s")
}

func TestRetireRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	d := retiring(t)
	socket, _ := serve(t, d)
	refusesArguments(t, d, socket,
		"retire n3 n4 --yes --reason x", "retire n3 --yes", "retire --undo", "retire --wait", "retire --yes",
		"retire n3 --yes --reason x --wait=-1s", "retire n3 --undo --yes --wait", "retire n3 --reason x",
		"retire n3 --undo --lost --yes", "retire --lost --yes",
	)
	d.fail = &control.Error{
		Status: 409, Code: control.CodeConflict, Message: "cannot retire n3: no host is ready to replace it",
		Hint: "quorumctl cluster resize 1",
	}
	if r := quorumctl(t, socket, "retire", "n3", "--yes", "--reason", "x"); r.code == exitOK ||
		!strings.Contains(r.stderr, "→ quorumctl cluster resize 1") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestRetireWaitsUntilTheHostCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		look func(look int, s *control.Status)
		code int
	}{
		"done": {"--wait", func(look int, s *control.Status) {
			switch {
			case look == 1:
				s.Op = &control.Op{Kind: "join", Host: "4", HostName: "n4", Phase: "added", Started: s.Time}
			case look == 2:
				s.Op = &control.Op{Kind: "leave", Host: "3", HostName: "n3", Phase: "removing", Started: s.Time}
			case look > 2:
				s.Op, s.Retired = nil, slices.Clone(s.Retired)
				s.Retired[0].State, s.Retired[0].Member = control.RetiredLeft, ""
			}
		}, exitOK},
		"late": {"--wait=1s", func(int, *control.Status) {}, exitTimeout},
		"undone": {"--wait", func(look int, s *control.Status) {
			if look > 1 {
				s.Retired = nil
			}
		}, exitFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := retiring(t)
			d.onRead = func(look int, s *control.Status) {
				s.Time = s.Time.Add(2 * time.Second)
				c.look(look, s)
			}
			socket, _ := serve(t, d)
			line := "retire n3 --yes --reason 'end of lease' " + c.args
			r := quorumctl(t, socket, splitLine(line)...)
			if r.code != c.code {
				t.Errorf("exit %d, want %d: %s%s", r.code, c.code, r.stdout, r.stderr)
			}
			want := map[string]string{
				"done": "n3 can be switched off", "late": "the retirement continues", "undone": "was undone meanwhile",
			}[name]
			if !strings.Contains(r.stdout+r.stderr, want) {
				t.Errorf("want %q: %s%s", want, r.stdout, r.stderr)
			}
		})
	}
}

func TestRetireOfALostHostReportsThatItsMemberIsRemoved(t *testing.T) {
	t.Parallel()
	d := retiring(t)
	d.retirement.Lost, d.retirement.FaultTolerance = true, 0
	d.retirement.Steps = []policy.PlanStep{
		{Text: "the operation of n3 ends without waiting for the host", Voters: 3},
		{Text: "member n3 (3) is removed by n1", Voters: 2, Final: true},
		{Text: "n4 joins as a learner, catches up and becomes a voter", Voters: 3, Tolerance: 1},
		{Text: "n3 stays out of the cluster until the retirement is undone", Voters: 3, Tolerance: 1},
	}
	socket, _ := serve(t, d)
	golden(t, "retire-lost.golden", transcript(t, socket, "retire n3 --lost --dry-run --reason 'its mainboard is dead'",
		"retire n3 --lost --yes --reason 'its mainboard is dead'"))
}
