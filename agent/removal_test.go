// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// lose silences a member for good. All other members answer.
func (f *fleet) lose(name string) {
	f.etcd.mu.Lock()
	defer f.etcd.mu.Unlock()
	f.etcd.silent = map[uint64]bool{}
	for _, m := range f.etcd.members {
		if m.Name == name {
			f.etcd.silent[m.ID] = true
		}
	}
}

func (f *fleet) removed(name string) bool {
	for _, m := range f.etcd.list() {
		if m.Name == name {
			return false
		}
	}
	return true
}

// loseHost silences a host and its agent for good.
func (f *fleet) loseHost(name string) {
	f.hosts[name].die()
	f.lose(name)
}

func TestARequestedRemovalRemovesADeadMember(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.loseHost("v3")
		f.pass(time.Minute)
		req := control.RemovalRequest{Member: "v3", Reason: "scrapped", For: control.Duration(5 * time.Minute)}
		h := f.hosts["v2"].agent
		got, err := h.RemoveMember(t.Context(), req, "root")
		if err != nil || got.Name != "v3" || got.MemberID != 3 || got.State != control.RemovalWaiting {
			t.Fatalf("the answer is %+v, %v", got, err)
		}
		f.until(time.Minute, "the member is removed", func() bool { return f.removed("v3") })
		f.until(time.Minute, "its end is reported", func() bool {
			s := h.Status()
			return s.Removal == nil && s.LastRemoval != nil && s.LastRemoval.Code == policy.Removed && s.Op == nil
		})
		if again, err := h.RemoveMember(t.Context(), req, "root"); err != nil || again.State != control.RemovalDone {
			t.Errorf("a second request: %+v, %v", again, err)
		}
		if h.files.Backoff("boot-v2", f.now(), time.Minute) != 0 {
			t.Error("the removal counts as a failed join of its host")
		}
	})
}

func TestAHopelessRemovalIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		h := f.hosts["v2"].agent
		ask := func(member string, live bool) string {
			_, err := h.RemoveMember(t.Context(), control.RemovalRequest{
				Member: member, Reason: "x", Live: live,
				For: control.Duration(time.Minute),
			}, "root")
			if err == nil {
				return "accepted"
			}
			return err.Error()
		}
		for member, want := range map[string]string{
			"v9": "no member has that name", "v2": "this host's own member", "2": "this host's own member",
			"v1": "voter v1 answers", "1": "voter v1 answers",
		} {
			if got := ask(member, false); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", member, got, want)
			}
		}
		req := control.RemovalRequest{Member: "v1", Reason: "x", For: control.Duration(time.Minute)}
		_, err := h.RemoveMember(t.Context(), req, "root")
		if e, is := errors.AsType[*control.Error](err); !is ||
			!strings.Contains(e.Hint, "quorumctl member remove v1 --live") {
			t.Errorf("the remedy is %+v", e)
		}
		f.loseHost("v3")
		f.pass(time.Minute)
		if got := ask("v1", true); !strings.Contains(got, "voter v1 answers, and is needed") {
			t.Errorf("a live one while another is down: %s", got)
		}
		if k, _ := h.files.Removals(); k != nil {
			t.Errorf("it is recorded all the same: %+v", k)
		}
	})
}

func TestARemovalOutlivesItsAgentAndExpires(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		f.takeDown("s0000")
		f.loseHost("v3")
		f.pass(time.Minute)
		h := f.hosts["v2"]
		req := control.RemovalRequest{Member: "v3", Reason: "scrapped", For: control.Duration(5 * time.Minute)}
		if _, err := h.agent.RemoveMember(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		h.die()
		h.boot("boot-v2")
		f.pass(time.Minute)
		if s := h.agent.Status(); s.Removal == nil || s.Removal.Name != "v3" ||
			s.Removal.State != control.RemovalWaiting {
			t.Fatalf("after a restart the request is %+v", s.Removal)
		}
		f.until(10*time.Minute, "it expires", func() bool {
			s := h.agent.Status()
			return s.Removal == nil && s.LastRemoval != nil && s.LastRemoval.Code == policy.Cancelled
		})
		if f.removed("v3") {
			t.Error("it was removed during another operation")
		}
	})
}

// noteRemoval records an operator's request to remove v3 on the host's disk.
func noteRemoval(t *testing.T, h *Agent, within time.Duration, begun bool) {
	t.Helper()
	if err := h.files.ChangeRemoval(func(file *hoststate.Removals) {
		file.Removal = &hoststate.Removal{RequestedRemoval: control.RequestedRemoval{
			MemberID: 3, Name: "v3", Reason: "scrapped", By: "root",
			Since: time.Now(), Until: time.Now().Add(within),
		}, Begun: begun}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestARemovalWithAnUnknownOperationIsNotReportedAsCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hide, show func(f *fleet) }{
		"etcd does not answer": {func(f *fleet) { f.etcd.cutOff(true) }, func(f *fleet) { f.etcd.cutOff(false) }},
		"its operation cannot be read": {
			func(f *fleet) { f.put(record.KeysFor("test").Op(), "garbage") },
			func(f *fleet) { f.remove(record.KeysFor("test").Op()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, 1, func(t *testing.T, f *fleet) {
				f.loseHost("v3")
				f.pass(time.Minute)
				h := f.hosts["v2"].agent
				c.hide(f) // before the removal can begin
				noteRemoval(t, h, time.Minute, false)
				f.pass(5 * time.Minute)
				if k, last := h.files.Removals(); k == nil || last != nil {
					t.Fatalf("it ended as %+v", last)
				}
				c.show(f)
				f.until(5*time.Minute, "its end is reported", func() bool {
					_, last := h.files.Removals()
					return last != nil
				})
			})
		})
	}
}

func TestAReleasedRemovalDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"before it has begun": false, "when its record is gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFleet(t, 1, func(t *testing.T, f *fleet) {
				f.loseHost("v3")
				f.pass(time.Minute)
				h := f.hosts["v2"].agent
				noteRemoval(t, h, time.Hour, begun)
				f.until(time.Minute, "its end is reported", func() bool {
					_, last := h.files.Removals()
					return last != nil
				})
				f.pass(5 * time.Minute)
				now, last := h.files.Removals()
				want := policy.Removed
				if begun {
					want = policy.Cancelled
				}
				if now != nil || last.Code != want || f.removed("v3") == begun {
					t.Errorf("the request is %+v; it ended as %+v; v3 is removed: %t", now, last, f.removed("v3"))
				}
			})
		})
	}
}
