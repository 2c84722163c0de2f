// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestARolloutIsStartedChangedAndStoppedOnlyInMatchingStates(t *testing.T) {
	t.Parallel()
	own := &Op{Kind: KindCycle, Host: "a"}
	for state, want := range map[RolloutState]struct{ starts, changes, stops bool }{
		RolloutRunning: {false, true, true},
		RolloutPaused:  {false, true, false},
		RolloutStopped: {true, true, false},
		RolloutAborted: {true, false, false},
		RolloutDone:    {true, false, false},
	} {
		starts, changes := AgainstRollout(state, "bob", "kernel") == nil, state.AgainstChange() == nil
		if starts != want.starts || changes != want.changes {
			t.Errorf("while a rollout is %s, a new one starts: %t, and it can be changed: %t", state, starts, changes)
		}
		if got := state.ReleaseStops(own, []string{"a"}); got != want.stops || state.ReleaseStops(nil, nil) != got {
			t.Errorf("a rollout that is %s stops with a release: %t", state, got)
		}
	}
	r := AgainstRollout(RolloutPaused, "bob", "kernel")
	if !strings.Contains(r.Text, "a rollout by bob is paused: kernel") {
		t.Errorf("%+v", r)
	}
	for _, op := range []*Op{{Kind: KindJoin, Host: "a"}, {Kind: KindCycle, Host: "b"}} {
		if RolloutRunning.ReleaseStops(op, []string{"a"}) {
			t.Errorf("the rollout stops with the release of a %s of %s", op.Kind, op.Host)
		}
	}
}

func TestARolloutCoversTheNamedHostsOrAllConcerned(t *testing.T) {
	t.Parallel()
	all := []RolloutHost{
		{ID: "1", Name: "a", Manage: true, Member: true, Etcd: "3.6.1"},
		{ID: "2", Name: "b", Manage: true, Member: true, Etcd: "3.6.0"},
		{ID: "3", Name: "spare", Manage: true, Etcd: "3.6.1"},
	}
	observes := slices.Concat(all, []RolloutHost{{ID: "4", Name: "d", Member: true}})
	for name, c := range map[string]struct {
		hosts   []RolloutHost
		named   []string
		work    Work
		version string
		want    string // the hosts; those in brackets are skipped
		refusal string
		kind    RefusalKind
	}{
		"a restart":            {hosts: all, work: WorkRestart, want: "a b"},
		"a reboot":             {hosts: all, work: WorkReboot, want: "a b spare"},
		"an upgrade":           {hosts: all, work: WorkCommand, version: "3.6.1", want: "(a) b spare"},
		"named by name and ID": {hosts: all, named: []string{"spare", "1"}, work: WorkRestart, want: "a spare"},
		"a host that does not exist": {
			hosts: all, named: []string{"a", "x", "y"}, work: WorkReboot, refusal: "called x, y", kind: Wrong,
		},
		"one that observes":         {hosts: observes, work: WorkReboot, refusal: "quorumd on d only observes"},
		"only hosts in mode manage": {hosts: observes, named: []string{"a"}, work: WorkReboot, want: "a"},
		"only spares":               {hosts: all[2:], work: WorkRestart, refusal: "no host is affected"},
	} {
		got, refused := RolloutHosts(c.hosts, c.named, c.work, c.version)
		var names []string
		for _, h := range got {
			if h.Skipped {
				h.Name = "(" + h.Name + ")"
			}
			names = append(names, h.Name)
		}
		switch {
		case strings.Join(names, " ") != c.want || (refused == nil) != (c.refusal == ""):
			t.Errorf("%s: %v, %+v", name, names, refused)
		case refused != nil && (refused.Kind != c.kind || !strings.Contains(refused.Text, c.refusal)):
			t.Errorf("%s: %+v, want %q", name, refused, c.refusal)
		}
	}
}

func TestARolloutOfAllHostsDoesNotStartIfAHostRecordIsUnreadable(t *testing.T) {
	t.Parallel()
	u := Unreadable{Kind: RecordHost, Key: "/q/hosts/a", Why: "it is cut short"}
	r := AgainstUnread(u, false)
	if r == nil || r.Code != RecordUnreadable || r.Text != "/q/hosts/a: it is cut short" ||
		!strings.Contains(r.Hint, "etcdctl del /q/hosts/a") || !strings.HasSuffix(r.Hint, "--hosts") {
		t.Errorf("of all hosts: %+v", r)
	}
	if r := AgainstUnread(u, true); r != nil {
		t.Errorf("of named hosts: %+v", r)
	}
}

func TestARolloutWithoutWaitingHostsIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	if state, text := RolloutBegins(1); state != RolloutRunning || text != "" {
		t.Errorf("one waits: %s, %q", state, text)
	}
	if state, text := RolloutBegins(0); state != RolloutDone || text == "" {
		t.Errorf("none waits: %s, %q", state, text)
	}
}

func TestAProgramThatCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	if r := AgainstProgram("on this host, ", ""); r != nil {
		t.Errorf("a program that can run: %+v", r)
	}
	r := AgainstProgram("on this host, ", "there is none")
	if r == nil || r.Kind != Conflicts || r.Text != "on this host, there is none" {
		t.Errorf("a program that cannot run: %+v", r)
	}
}
