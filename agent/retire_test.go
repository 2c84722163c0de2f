// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// retire asks v2 to retire a host, or to undo its retirement.
func (f *fleet) retire(host string, undo bool) (control.Retirement, error) {
	req := control.RetireRequest{Host: host, Reason: "a test", Undo: undo}
	return f.hosts["v2"].agent.Retire(f.t.Context(), req, "root")
}

// retired returns the ID and the state of the retired host in a host's status; empty unless there is exactly one.
func (f *fleet) retired(name string) string {
	if all := f.hosts[name].agent.Status().Retired; len(all) == 1 {
		return all[0].ID + " " + all[0].State
	}
	return ""
}

// vote reports whether these hosts vote, and no others.
func (f *fleet) vote(names ...string) bool {
	got := f.voters()
	slices.Sort(got)
	return slices.Equal(got, names)
}

func TestARetiredHostIsReplacedAndStaysOutUntilThatIsUndone(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		would, err := f.hosts["v2"].agent.Retire(t.Context(), control.RetireRequest{
			Host: "v3", Reason: "a test", DryRun: true,
		}, "root")
		if err != nil || len(would.Steps) != 3 || would.Size == nil || would.Size.Voters != 3 {
			t.Fatalf("the dry run: %+v, %v", would, err)
		}
		if f.etcd.has(keys.Retired("id-v3")) || f.etcd.has(keys.Size()) {
			t.Fatal("the dry run has recorded something")
		}
		does, err := f.retire("v3", false)
		if err != nil || !slices.Equal(does.Steps, would.Steps) || !f.etcd.has(keys.Retired("id-v3")) ||
			!f.etcd.has(keys.Size()) {
			t.Fatalf("%+v, %v", does, err)
		}
		if again, err := f.retire("id-v3", false); err != nil || !again.Unchanged {
			t.Errorf("again: %+v, %v", again, err)
		}
		got, err := record.Decode[record.Retired]([]byte(f.etcd.get(keys.Retired("id-v3"))))
		if err != nil || got.MemberID != 3 {
			t.Errorf("the record is %+v, %v", got, err)
		}
		f.until(10*time.Minute, "the spare votes in its place", func() bool {
			return f.vote("s0000", "v1", "v2") && f.retired("v1") == "id-v3 left"
		})
		f.pass(10 * time.Minute)
		if !f.vote("s0000", "v1", "v2") {
			t.Fatalf("the voters are %v", f.voters())
		}
		if s := f.hosts["v3"].agent.Status(); !slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
			return r.Code == string(policy.HostRetired)
		}) {
			t.Errorf("v3 reports %+v", s.Reasons)
		}
		if got, err := f.retire("v3", true); err != nil || got.Unchanged || f.etcd.has(keys.Retired("id-v3")) {
			t.Fatalf("undo: %+v, %v", got, err)
		}
		if got, err := f.retire("v3", true); err != nil || !got.Unchanged {
			t.Errorf("undone again: %+v, %v", got, err)
		}
		if _, err := f.retire("v9", true); err == nil || !strings.Contains(err.Error(), "no host with that name") {
			t.Errorf("undo for an unknown host: %v", err)
		}
		f.pass(10 * time.Second)
		if f.retired("v1") != "" {
			t.Errorf("v1 still lists %q", f.retired("v1"))
		}
		want := []string{"v2: v3 by root: a test"}
		for _, code := range []string{"RETIRED", "RETIREMENT_UNDONE"} {
			if got := f.noted(code); !slices.Equal(got, want) {
				t.Errorf("%s: %q", code, got)
			}
		}
		if _, err := f.retire("v3", false); err != nil {
			t.Errorf("a spare is retired: %v", err)
		}
	})
}

// The named host is the last in the join queue, and most spares are resting (see policy.View.Resting).
func TestOnlyTheNamedSpareReplacesARetiredHost(t *testing.T) {
	t.Parallel()
	inFleet(t, 110, func(t *testing.T, f *fleet) {
		key := record.KeysFor("test").Retired("id-v3")
		named := func(next string) (control.Retirement, error) {
			return f.hosts["v2"].agent.Retire(t.Context(), control.RetireRequest{
				Host: "v3", Successor: next, Reason: "a test",
			}, "root")
		}
		for next, want := range map[string]string{
			"v1": "cannot replace v3: v1 has a voter already",
			"v9": "cannot replace v3: no host with the name or ID v9",
		} {
			if got, err := named(next); err == nil || !strings.Contains(err.Error(), want) || f.etcd.has(key) {
				t.Errorf("%s: %+v, %v", next, got, err)
			}
		}
		if got, err := named("s0108"); err != nil || got.Host.Successor != "s0108" {
			t.Fatalf("%+v, %v", got, err)
		}
		got, err := named("id-s0109")
		if err != nil || got.Unchanged || !strings.HasPrefix(got.Steps[0].Text, "s0109 joins as a learner") {
			t.Fatalf("another host is named: %+v, %v", got, err)
		}
		if again, err := named("s0109"); err != nil || !again.Unchanged {
			t.Errorf("again: %+v, %v", again, err)
		}
		if _, err := f.retire("s0109", false); err == nil ||
			!strings.Contains(err.Error(), "s0109 is named to replace v3") {
			t.Errorf("the named host is retired: %v", err)
		}
		f.until(20*time.Minute, "the named spare votes in its place", func() bool {
			return f.vote("s0109", "v1", "v2") && f.retired("v1") == "id-v3 left"
		})
	})
}

func TestARetirementThatIsImpossibleNowIsRefusedAndNotRecorded(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for host, want := range map[string]string{
			"v3": "no host is ready to replace it", "v9": "no host with that name", "": "no host with that name",
		} {
			if got, err := f.retire(host, false); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %+v, %v", host, got, err)
			}
		}
		f.put(keys.Retired("id-v9"), `{"version":1,"name":"v9","peerURL":"http://v9"}`)
		if f.etcd.has(keys.Retired("id-v3")) || len(f.noted("RETIRED")) > 0 {
			t.Error("a refused retirement was recorded")
		}
		if got, err := f.retire("v9", false); err != nil || !got.Unchanged {
			t.Errorf("a retired host that is switched off: %+v, %v", got, err)
		}
		if got, err := f.retire("v9", true); err != nil || got.Unchanged || f.etcd.has(keys.Retired("id-v9")) {
			t.Errorf("undone for a host that is switched off: %+v, %v", got, err)
		}
		f.put(keys.Retired("id-v3"), `{"version":1,"name":"v3","peerURL":"http://v3","by":"root","reason":"old",`+
			`"since":"2026-01-02T03:04:05Z","successor":{"host":"id-s1","name":"s1","peerURL":"http://s1"}}`)
		if got, err := f.retire("v3", false); err != nil || got.Unchanged || got.Host.Successor != "" {
			t.Errorf("the named host is lost, and an operator lets any host join: %+v, %v", got, err)
		}
		if _, err := f.retire("v3", true); err != nil {
			t.Error(err)
		}
	})
}

func TestAnUnreadableRetirementKeepsTheHostOutAndItsMemberIn(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for what, value := range strange() {
			f.put(keys.Retired("id-v3"), value)
			f.pass(10 * time.Second)
			if got := f.retired("v1"); got != "id-v3 unreadable" {
				t.Errorf("%s: v1 lists %q", what, got)
			}
			if text := f.tells("v1", keys.Retired("id-v3")); !strings.Contains(text, "quorumctl retire HOST --undo") {
				t.Errorf("%s: v1 reports %q", what, text)
			}
		}
		f.pass(10 * time.Minute)
		if !f.vote("v1", "v2", "v3") {
			t.Fatalf("the voters are %v", f.voters())
		}
		if got, err := f.retire("v3", true); err != nil || got.Unchanged || f.etcd.has(keys.Retired("id-v3")) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestMoreRetirementsThanTheLimitAreReportedAndNotRead(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		for i := range 3 * record.MaxRetired {
			name := fmt.Sprintf("x%03d", i)
			f.put(keys.Retired(name), `{"version":1,"name":"`+name+`","peerURL":"http://`+name+`"}`)
		}
		f.pass(10 * time.Second)
		if n := len(f.hosts["v1"].agent.Status().Retired); n != record.MaxRetired {
			t.Errorf("v1 lists %d", n)
		}
		first := keys.Retired(fmt.Sprintf("x%03d", record.MaxRetired))
		if text := f.tells("v1", first); !strings.Contains(text, "not read") {
			t.Errorf("v1 reports %q", text)
		}
		if _, err := f.retire("s0000", false); err == nil || !strings.Contains(err.Error(), "the limit is 64") {
			t.Errorf("one more: %v", err)
		}
	})
}

func TestAHostLostInMaintenanceIsRetiredAndReplaced(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		keys := record.KeysFor("test")
		req := control.RetireRequest{Host: "v3", Lost: true, Reason: "its mainboard is dead"}
		h := f.hosts["v2"].agent
		refused := func(what, want string) {
			t.Helper()
			if got, err := h.Retire(t.Context(), req, "root"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		refused("before its maintenance", "no operation has taken it down")
		f.takeDown("v3")
		f.pass(10 * time.Second)
		refused("while its agent runs", "quorumd runs on v3")
		f.loseHost("v3")
		f.until(3*time.Minute, "the record of the host expires", func() bool { return !f.etcd.has(keys.Host("id-v3")) })
		f.pass(time.Minute)
		_, op := f.op()
		asks := req
		asks.DryRun = true
		would, err := h.Retire(t.Context(), asks, "root")
		if _, now := f.op(); err != nil || len(would.Steps) != 4 || now != op || f.etcd.has(keys.Retired("id-v3")) {
			t.Fatalf("the dry run: %+v, %v", would, err)
		}
		does, err := h.Retire(t.Context(), req, "root")
		if err != nil || !slices.Equal(does.Steps, would.Steps) || !f.etcd.has(keys.Retired("id-v3")) ||
			!f.etcd.has(keys.Release("id-v3")) || !f.etcd.has(keys.Size()) || !does.Lost {
			t.Fatalf("%+v, %v", does, err)
		}
		f.until(10*time.Minute, "the spare votes in its place", func() bool {
			return f.vote("s0000", "v1", "v2") && f.retired("v1") == "id-v3 left"
		})
		refused("again", "no operation has taken it down")
		want := []string{"v2: v3, lost in an operation, by root: its mainboard is dead"}
		if got := f.noted("RETIRED"); !slices.Equal(got, want) {
			t.Errorf("the history has %q", got)
		}
	})
}

func TestUndoingTheRetirementOfALostHostCancelsTheRemovalOfItsMember(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		h := f.hosts["v2"].agent
		f.takeDown("v3")
		f.loseHost("v3")
		f.until(3*time.Minute, "the record of the host expires", func() bool {
			return !f.etcd.has(record.KeysFor("test").Host("id-v3"))
		})
		f.pass(time.Minute)
		pause := control.PauseRequest{Reason: "a test", For: control.Duration(10 * time.Minute)}
		req := control.RetireRequest{Host: "v3", Lost: true, Reason: "dead"}
		if _, err := h.Retire(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Pause(t.Context(), pause, "root"); err != nil {
			t.Fatal(err)
		}
		f.pass(20 * time.Second)
		if h.Status().Removal == nil {
			t.Fatal("no removal is pending during the pause")
		}
		if _, err := f.retire("v3", true); err != nil {
			t.Fatal(err)
		}
		f.until(time.Minute, "the removal is cancelled", func() bool {
			s := h.Status()
			return s.Removal == nil && s.LastRemoval != nil && s.LastRemoval.Code == policy.Cancelled
		})
		if !f.vote("v1", "v2", "v3") {
			t.Errorf("the voters are %v", f.voters())
		}
	})
}
