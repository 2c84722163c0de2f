// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

const leavesText = " leaves: proxies stop using it, its member is removed, etcd is stopped and its data is moved aside"

// shrinking returns a backend of three voters with the plan of a resize to one.
func shrinking(t *testing.T) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.size = control.Resize{
		Voters: 3, Configured: 3, Revision: 4711, FaultTolerance: 1,
		Steps: []policy.PlanStep{
			{Text: "n3" + leavesText, Voters: 2, Final: true},
			{
				Text:   "leadership is transferred from n2 to n1, then n2" + leavesText,
				Voters: 1, Final: true, WaitsFor: "voter n2 has been live for 2 s; 10 s are needed",
			},
		},
		Warnings: []string{"one voter tolerates no failure: if its disk fails, a snapshot is all that is left"},
	}
	return d
}

// growing returns a backend of three voters with the plan of a resize to five.
func growing(t *testing.T) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.size = control.Resize{
		Voters: 3, Configured: 3, FaultTolerance: 1,
		Steps: []policy.PlanStep{
			{Text: "n4 joins as a learner, catches up and becomes a voter", Voters: 4, Tolerance: 1},
			{
				Text: "another host joins as a learner, catches up and becomes a voter", Voters: 5, Tolerance: 2,
				WaitsFor: "no other host is ready; quorumctl explain on the hosts shows why",
			},
		},
	}
	return d
}

func TestResizeShowsItsPlan(t *testing.T) {
	t.Parallel()
	small, _ := serve(t, shrinking(t))
	large, _ := serve(t, growing(t))
	same := scene(t, "steady")
	same.size = control.Resize{Voters: 3, Configured: 3, FaultTolerance: 1}
	equal, _ := serve(t, same)
	again := shrinking(t)
	again.size.Unchanged = true
	again.size.Size = &control.Size{Voters: 1, By: "alice", Reason: "moving away", Since: again.status.Time}
	recorded, _ := serve(t, again)
	got := transcript(t, small, "cluster resize 1 --dry-run --reason 'moving away'",
		"cluster resize 1 --dry-run -o yaml",
		"cluster resize 1 --yes --without-snapshot", "cluster resize", "status")
	got = append(got, transcript(t, large, "cluster resize", "cluster resize 5 --dry-run", "cluster resize 5 --yes",
		"cluster resize -o json")...)
	got = append(got, transcript(t, equal, "cluster resize 3 --dry-run", "cluster resize 3 --yes")...)
	got = append(got, transcript(t, recorded, "cluster resize 1 --dry-run")...)
	golden(t, "resize.golden", got)
}

func TestResizeRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	d := growing(t)
	socket, _ := serve(t, d)
	refusesArguments(t, d, socket,
		"cluster resize five", "cluster resize 0 --yes", "cluster resize -- -3", "cluster resize 3 5",
		"cluster resize --wait", "cluster resize --yes", "cluster resize --dry-run",
		"cluster resize 5 --yes --wait=-1s", "cluster resize 5",
	)
	d.fail = &control.Error{
		Status: 409, Code: control.CodeConflict, Message: "cannot resize the cluster to 4: 4 voters are even",
		Hint: "choose 3 or 5",
	}
	if r := quorumctl(t, socket, "cluster", "resize", "4", "--yes"); r.code == exitOK ||
		!strings.Contains(r.stderr, "→ choose 3 or 5") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestResizeWaitFollowsTheVotersUntilTheClusterHasItsSize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		look func(look int, s *control.Status)
		code int
	}{
		"done": {"--wait", func(look int, s *control.Status) {
			switch {
			case look == 2:
				s.Op = &control.Op{Kind: "leave", Host: "3", HostName: "n3", Phase: "removing", Started: s.Time}
			case look == 3:
				s.Cluster.Voters, s.Op = 2, nil
				s.Reasons = []control.Reason{{
					Code: string(policy.TooManyVoters), Caution: true,
					Text: "2 voters, and an operator has resized the cluster to 1: n2 leaves next",
				}}
			case look > 3:
				s.Cluster.Voters, s.Cluster.FaultTolerance, s.Reasons = 1, 0, nil
			}
		}, exitOK},
		"late": {"--wait=1s", func(int, *control.Status) {}, exitTimeout},
		"other": {"--wait", func(look int, s *control.Status) {
			if look > 1 {
				s.Cluster.Size = &control.Size{Voters: 3, By: "alice", Since: s.Time.Add(time.Hour)}
			}
		}, exitFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := shrinking(t)
			d.onRead = func(look int, s *control.Status) {
				s.Time = s.Time.Add(2 * time.Second)
				c.look(look, s)
			}
			socket, _ := serve(t, d)
			line := "cluster resize 1 --yes --reason 'moving away' " + c.args
			golden(t, "resize-wait-"+name+".golden", transcript(t, socket, line))
			if r := quorumctl(t, socket, splitLine(line)...); r.code != c.code {
				t.Errorf("exit %d, want %d: %s", r.code, c.code, r.stderr)
			}
		})
	}
}

// A confirmed request contains the revision of its plan, because another operator may change the size while the
// confirmation prompt is open.
func TestAConfirmedResizeNamesTheRevisionOfItsPlan(t *testing.T) {
	t.Parallel()
	d := shrinking(t)
	socket, _ := serve(t, d)
	quorumctl(t, socket, "cluster", "resize", "1", "--yes")
	if asked := d.requests(); asked != "resize to 1 if revision any, without snapshot false: " {
		t.Errorf("with --yes: %q", asked)
	}
	if asked := confirmOnTerminal(t, socket, d, "cluster resize 1"); !strings.HasSuffix(asked,
		"resize to 1 if revision 4711, without snapshot false: ") {
		t.Errorf("confirmed: %q", asked)
	}
}

// confirmOnTerminal runs a command on a terminal, answers its question with yes, and returns the requests so far.
func confirmOnTerminal(t *testing.T, socket string, d *fakeBackend, line string) string {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, terminal := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), me, append([]string{"--socket", socket}, splitLine(line)...)...)
	cmd.Env = append(os.Environ(), "QUORUMCTL_TEST_MAIN=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, new(bytes.Buffer), terminal
	if _, err := master.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return d.requests()
}
