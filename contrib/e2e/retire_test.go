// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// retire asks this host to retire another one. It returns the plan, and the reason if the request is refused.
func (h *host) retire(req control.RetireRequest) (control.Retirement, string) {
	h.w.t.Helper()
	req.Reason = "a test"
	return ask(h, req, h.Client.Retire)
}

// mustRetire retires a host with the plan of a dry run, and checks that both plans are the same.
func (h *host) mustRetire(name string) control.Retirement {
	h.w.t.Helper()
	would, refused := h.retire(control.RetireRequest{Host: name, DryRun: true})
	if refused != "" {
		h.w.t.Fatal(refused)
	}
	does, refused := h.retire(control.RetireRequest{Host: name})
	if refused != "" {
		h.w.t.Fatal(refused)
	}
	if !slices.EqualFunc(would.Steps, does.Steps, samePlan) {
		h.w.t.Errorf("the dry run planned %+v, and the request %+v", would.Steps, does.Steps)
	}
	h.w.t.Logf("%s: %+v", name, does.Steps)
	return does
}

// samePlan reports whether two steps are the same, apart from the voter that is to lead: measurements decide which one
// it is.
func samePlan(a, b policy.PlanStep) bool {
	toLead := regexp.MustCompile(`^leadership is transferred from (\S+) to \S+, `)
	a.Text, b.Text = toLead.ReplaceAllString(a.Text, "$1 "), toLead.ReplaceAllString(b.Text, "$1 ")
	return a == b
}

// undo undoes the retirement of a host.
func (h *host) undo(name string) {
	h.w.t.Helper()
	if got, refused := h.retire(control.RetireRequest{Host: name, Undo: true}); refused != "" || got.Unchanged {
		h.w.t.Fatalf("the retirement of %s was not undone: %s", name, refused)
	}
}

// shows returns the state in which a host's status lists the retired host with that name.
func (h *host) shows(name string) string {
	s, ok := h.status()
	if i := slices.IndexFunc(s.Retired, func(r control.Retired) bool { return r.Name == name }); ok && i >= 0 {
		return s.Retired[i].State
	}
	return ""
}

// votersAndSpares makes a world of three live voters and that many spares that are ready to join.
func votersAndSpares(t *testing.T, spares int) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 3 + spares, voters: 3})
	w.start()
	w.bootstrap()
	w.within(3*formation, "three vote", func() bool { return w.has(3, 0) && !w.busy() })
	w.observesReadySpares(3, spares)
	return w
}

// observesReadySpares waits until n1 observes that many live voters, and that many spares that are ready to join.
func (w *world) observesReadySpares(voters, spares int) {
	w.t.Helper()
	w.hosts[0].observes("n1 observes all voters", voters)
	w.eventually("the spares are ready to join", func() bool {
		s, ok := w.hosts[0].status()
		ready := 0
		for _, h := range s.Hosts {
			if h.Role == policy.RoleSpare && h.Rank > 0 {
				ready++
			}
		}
		return ok && ready == spares
	})
}

// split returns the hosts that vote, the leader first, and the others.
func (w *world) split() (voters, others []*host) {
	w.t.Helper()
	s, ok := w.hosts[0].status()
	if !ok {
		w.t.Fatal("n1 does not answer")
	}
	for _, h := range w.hosts {
		i := slices.IndexFunc(s.Cluster.Members, func(m control.Member) bool {
			return m.Name == h.Options.Name && m.Role == policy.RoleVoter
		})
		switch {
		case i < 0:
			others = append(others, h)
		case s.Cluster.Members[i].Leader:
			voters = slices.Insert(voters, 0, h)
		default:
			voters = append(voters, h)
		}
	}
	return voters, others
}

func TestAFollowerAndTheLeaderAreRetiredAsPlannedWithoutAFailedWrite(t *testing.T) {
	t.Parallel()
	w := votersAndSpares(t, 2)
	voters, _ := w.split()
	leader, follower := voters[0], voters[1]
	load := w.retrying(50)
	for _, h := range []*host{follower, leader} {
		name := h.Options.Name
		before := len(w.mustHistory())
		plan := voters[2].mustRetire(name)
		if len(plan.Steps) != 3 || plan.Steps[0].Voters != 4 || !plan.Steps[1].Final {
			t.Errorf("the plan is %+v", plan.Steps)
		}
		w.within(4*formation, name+" can be switched off", func() bool {
			return voters[2].shows(name) == control.RetiredLeft && w.has(3, 0) && !w.isVoter(h)
		})
		w.eventually("the etcd of "+name+" is stopped", func() bool { return !h.etcdRuns() })
		replacement, _, _ := strings.Cut(plan.Steps[0].Text, " ")
		if !w.isVoter(w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h.Options.Name == replacement })]) {
			t.Errorf("%s does not vote, and the plan was %+v", replacement, plan.Steps)
		}
		voters[2].observes("three live voters", 3)
		w.checkPlan(plan.Steps, before)
	}
	checkReport(t, load)

	follower.kill()
	w.start(follower)
	w.eventually("the retired host reports why it does nothing", func() bool {
		return follower.hasReason(policy.HostRetired)
	})
	if s, refused := voters[2].retire(control.RetireRequest{Host: leader.Options.Name}); refused != "" || !s.Unchanged {
		t.Errorf("retired again: %+v, %s", s, refused)
	}
	w.never(10*time.Second, "a retired host joins", func() bool { return w.isVoter(follower) || w.isVoter(leader) })
	voters[2].undo(follower.Options.Name)
	w.eventually("the host is a spare that may join", func() bool {
		return follower.role() == policy.RoleSpare && !follower.hasReason(policy.HostRetired)
	})
	follower.mustRetire(voters[2].Options.Name) // no other host could replace it
	w.within(4*formation, "the host votes again", func() bool { return w.isVoter(follower) && w.has(3, 0) })
	w.verify(3, 0)
}

func TestTheNamedHostReplacesTheLeaderUnderWrites(t *testing.T) {
	t.Parallel()
	w := votersAndSpares(t, 2)
	voters, others := w.split()
	leader, by := voters[0], voters[2]
	old := leader.Options.Name
	plan, refused := by.retire(control.RetireRequest{Host: old, DryRun: true})
	if refused != "" || len(plan.Steps) != 3 {
		t.Fatalf("%s: %+v", refused, plan.Steps)
	}
	best, _, _ := strings.Cut(plan.Steps[0].Text, " ")
	slices.SortFunc(others, func(a, b *host) int { // the one that would join by rank comes last
		return strings.Compare(strconv.FormatBool(a.Options.Name == best), strconv.FormatBool(b.Options.Name == best))
	})
	named, faster := others[0], others[1]
	req := control.RetireRequest{Host: old, Successor: voters[1].Options.Name}
	if _, refused = by.retire(req); !strings.Contains(refused, "has a voter already") {
		t.Errorf("a voter replaces the leader: %q", refused)
	}
	if req.Successor = "n9"; !strings.Contains(second(by.retire(req)), "runs quorumd") {
		t.Error("an unknown host replaces the leader")
	}
	load := w.retrying(50)
	req.Successor = named.Options.Name
	named.stopAt("before take-lock") // so neither the lock nor an operation keeps the other spare from joining
	if plan, refused = by.retire(req); refused != "" {
		t.Fatal(refused)
	}
	if want := named.Options.Name + " joins as a learner"; !strings.HasPrefix(plan.Steps[0].Text, want) {
		t.Errorf("the plan is %+v", plan.Steps)
	}
	t.Logf("%s by %s, and %s is better ranked: %+v", old, named.Options.Name, faster.Options.Name, plan.Steps)
	named.waitStopped()
	w.never(10*time.Second, "the better ranked host joins while the named one does not act", func() bool {
		return w.isVoter(faster) || faster.etcdRuns()
	})
	w.eventually("the better ranked host reports why it does not join", func() bool {
		return faster.hasReason(policy.LowerRanked)
	})
	named.resume()
	w.within(4*formation, old+" can be switched off", func() bool {
		return by.shows(old) == control.RetiredLeft && w.has(3, 0) && !w.isVoter(leader)
	})
	checkReport(t, load)
	if !w.isVoter(named) || w.isVoter(faster) {
		t.Errorf("%s does not vote in place of %s", named.Options.Name, old)
	}
	by.observes("three live voters", 3)
	by.undo(old)
	w.eventually("the host is a spare that may join", func() bool {
		return leader.role() == policy.RoleSpare && !leader.hasReason(policy.HostRetired)
	})
	w.verify(3, 0)
}

// second returns the reason of a refusal.
func second(_ control.Retirement, refused string) string { return refused }

func TestARetirementUndoneBeforeTheReplacementHasJoinedChangesNothing(t *testing.T) {
	t.Parallel()
	w := votersAndSpares(t, 1)
	voters, others := w.split()
	before := w.members()
	spare := others[0]
	spare.stopAt("before add-learner")
	load := w.retrying(20)
	voters[0].mustRetire(voters[1].Options.Name)
	spare.waitStopped()
	voters[0].undo(voters[1].Options.Name)
	spare.resume()
	w.eventually("the join has ended", func() bool { return !w.busy() })
	w.within(4*formation, "the cluster has three voters again", func() bool { return w.has(3, 0) && !w.busy() })
	checkReport(t, load)
	for i, m := range w.members() {
		if m.ID != before[i].ID {
			t.Errorf("member %x was replaced by %x", before[i].ID, m.ID)
		}
	}
	w.verify(3, 0)
}

func TestAHostLostInMaintenanceIsRetiredAndReplacedUnderWrites(t *testing.T) {
	t.Parallel()
	w := votersAndSpares(t, 1)
	voters, others := w.split()
	by, lost := voters[0], voters[2]
	load := w.retrying(20)
	lost.request(control.MaintenanceRequest{Work: policy.WorkMaintenance, Reason: "new disk"})
	w.eventually("the host may be touched", func() bool { return lost.maintenance() == policy.RequestSafe })
	req := control.RetireRequest{Host: lost.Options.Name, Lost: true}
	if _, refused := by.retire(req); !strings.Contains(refused, "quorumd runs on "+lost.Options.Name) {
		t.Errorf("while its quorumd runs: %q", refused)
	}
	by.killForGood(lost)
	asked := time.Now()
	w.within(4*formation, "the host record of the lost host has expired, and the host can be retired", func() bool {
		_, refused := by.retire(req)
		return refused == ""
	})
	recorded := time.Now()
	w.within(4*formation, "the spare votes in its place", func() bool {
		return by.shows(lost.Options.Name) == control.RetiredLeft && w.has(3, 0) && w.isVoter(others[0])
	})
	t.Logf("accepted after %s, replaced %s later", recorded.Sub(asked).Round(time.Second/10),
		time.Since(recorded).Round(time.Second/10))
	checkReport(t, load)
	w.start(lost)
	w.eventually("the lost host is back and stays out", func() bool { return lost.hasReason(policy.HostRetired) })
	w.eventually("the request of the lost host has ended", func() bool { return lost.maintenance() == "" })
	w.never(5*time.Second, "the lost host votes or its etcd runs", func() bool {
		return w.isVoter(lost) || lost.etcdRuns()
	})
	w.verify(3, 0)
}
