// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// facts returns the facts of a host without a quorum, encoded and read again as by quorumctl recover collect and plan.
func (h *host) facts() recovery.Facts {
	h.w.t.Helper()
	var text []byte
	h.w.eventually(h.Options.Name+" reports its facts, and observes no quorum", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		f, err := h.Client.RecoveryFacts(ctx)
		if err != nil || f.Quorum {
			return false
		}
		text, err = json.Marshal(f)
		return err == nil
	})
	f, err := recovery.ReadFacts(bytes.NewReader(text))
	if err != nil {
		h.w.t.Fatal(err)
	}
	return f
}

// plan makes a plan from the facts of these hosts.
func (w *world) plan(gone []string, hosts ...*host) recovery.Plan {
	w.t.Helper()
	return w.planWith(recovery.Choice{ID: "abcdefghijkl", New: 0xabcdef0123, Gone: gone}, hosts...)
}

func (w *world) planWith(choice recovery.Choice, hosts ...*host) recovery.Plan {
	w.t.Helper()
	var all []recovery.Facts
	for _, h := range hosts {
		all = append(all, h.facts())
	}
	choice.Cluster, choice.At = clusterName, time.Now()
	if gone := choice.Gone; len(gone) > 0 {
		if _, err := recovery.NewPlan(all, recovery.Choice{
			Cluster: clusterName, At: time.Now(), ID: choice.ID, New: 1,
		}); err == nil || !strings.Contains(err.Error(), "--gone "+strings.Join(gone, ",")) {
			w.t.Errorf("a plan that does not name the hosts that are gone: %v", err)
		}
	}
	p, err := recovery.NewPlan(all, choice)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// apply applies the plan. It returns the reason if the plan is refused, or "".
func (h *host) apply(p recovery.Plan) string {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := h.Client.ApplyRecovery(ctx, p); err != nil {
		return err.Error()
	}
	return ""
}

// lose kills all processes on these hosts at once, and removes their etcd's data for good.
func (w *world) lose(hosts ...*host) {
	w.t.Helper()
	for _, h := range hosts {
		h.kill()
		h.killEtcd()
		h.off = true
	}
	for _, h := range hosts {
		if err := h.end(); err != nil {
			w.t.Fatal(err)
		}
		maps.DeleteFunc(w.data, func(_, path string) bool { return strings.HasPrefix(path, h.Options.Dir) })
		for _, disk := range []string{"disk", "wal"} {
			must(w.t, os.RemoveAll(filepath.Join(h.Options.Dir, disk, "etcd")))
		}
		h.syncDisks()
	}
}

// waitRecovered waits until a host has carried out its part of the plan.
func (h *host) waitRecovered() {
	h.w.t.Helper()
	h.w.eventually(h.Options.Name+" has carried out its part of the plan", func() bool {
		s, ok := h.status()
		return ok && s.Recovery == nil && s.LastRecovery != nil && s.LastRecovery.Code == policy.Recovered
	})
}

// readBack checks that every acknowledged write is in the store, and that a watch from the last revision fails because
// the revision was compacted.
func (w *world) readBack(h *host, report testbed.LoadReport) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	last, err := report.ReadBack(ctx, h.etcd, "load/")
	if err != nil {
		w.t.Error(err)
	}
	if err := testbed.CheckCompacted(ctx, h.etcd, last); err != nil {
		w.t.Error(err)
	}
	w.t.Logf("%d writes were acknowledged, up to revision %d", report.Acked, last)
}

// writeUntilStopped writes to the cluster until stop has stopped the cluster.
func (w *world) writeUntilStopped(stop func()) testbed.LoadReport {
	w.t.Helper()
	load, err := testbed.StartWriteLoad(context.Background(), testbed.LoadOptions{
		Endpoints: w.hosts[0].Options.Endpoints, Rate: 100,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("100 writes are acknowledged", func() bool { return load.Report().Acked > 100 })
	stop()
	return load.Stop()
}

// expectOnlySurvivorOK checks that no host but the survivor is shown as a voter or as OK. The data from which the
// cluster was rebuilt contains the records of the other hosts, and the leases of these records start again.
func (h *host) expectOnlySurvivorOK() {
	h.w.t.Helper()
	former := 0
	s, ok := h.status()
	for _, row := range s.Hosts {
		if row.Former {
			former++
		}
		if row.Name != h.Options.Name && (row.Role == policy.RoleVoter || row.Health == "OK") {
			h.w.t.Errorf("%s is %s and %s after it was lost: %+v", row.Name, row.Role, row.Health, row)
		}
	}
	h.w.t.Logf("%d of %d records are of lost hosts (answered: %t)", former, len(s.Hosts), ok)
}

func TestQuorumLossIsRecoveredWithAllDataOfTheSurvivor(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	healthy := w.refusedWhileHealthy()
	report := w.writeUntilStopped(func() { w.lose(n2, n3) })
	plan := w.plan([]string{"n2", "n3"}, n1)
	second := w.planWith(recovery.Choice{ID: "secondplan00", New: 0xabcdef0456, Gone: []string{"n2", "n3"}}, n1)
	if text := n1.apply(healthy); !strings.Contains(text, "last log entry") {
		t.Errorf("an earlier plan: %q", text)
	}
	n1.stopAt("before " + string(policy.StepPlaceCopy))
	for range 2 {
		if text := n1.apply(plan); text != "" {
			t.Fatal(text)
		}
	}
	n1.waitStopped()
	if text := n1.apply(second); !strings.Contains(text, "n1 received plan abcdefghijkl with survivor ") {
		t.Errorf("a second plan of the same facts, while the first is under way: %q", text)
	}
	n1.resume()
	other := plan
	other.ID = "zyxwvutsrqpo"
	if text := n1.apply(other); text == "" {
		t.Error("an edited plan was accepted")
	}
	n1.waitRecovered()
	n1.expectOnlySurvivorOK()
	w.readBack(n1, report)
	if text := n1.apply(plan); text != "" {
		t.Errorf("applied after its end: %s", text)
	}
	if text := n1.apply(second); !strings.Contains(text, "n1 sees a quorum") {
		t.Errorf("the second plan, after the end of the first: %q", text)
	}
	if !w.has(1, 0) {
		t.Errorf("the members are %v", w.members())
	}
	w.start(n2, n3) // with new disks, and quorumd's own state as it was
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
}

// refusedWhileHealthy checks that no plan is made for a cluster that has a quorum, and that such a cluster accepts no
// plan. It returns a plan that was made from forged facts.
func (w *world) refusedWhileHealthy() recovery.Plan {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	f, err := w.hosts[0].Client.RecoveryFacts(ctx)
	if err != nil || !f.Quorum {
		w.t.Fatalf("a host of a healthy cluster reports %+v: %v", f, err)
	}
	choice := recovery.Choice{
		Cluster: clusterName, Gone: []string{"n2", "n3"}, At: time.Now(), ID: "healthyplan0",
		New: 2,
	}
	_, err = recovery.NewPlan([]recovery.Facts{f}, choice)
	if err == nil || !strings.Contains(err.Error(), "sees a quorum") {
		w.t.Errorf("a plan for a healthy cluster: %v", err)
	}
	f.Quorum = false
	p, err := recovery.NewPlan([]recovery.Facts{f.Sealed()}, choice)
	if err != nil {
		w.t.Fatal(err)
	}
	if text := w.hosts[0].apply(p); !strings.Contains(text, "sees a quorum") {
		w.t.Errorf("a healthy host accepts a plan: %q", text)
	}
	return p
}

func TestQuorumLossOfFiveLeavesTwoAndOneMovesItsDataAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 5, voters: 5})
	w.start()
	w.bootstrap()
	w.within(3*formation, "there are 5 voters", func() bool { return w.has(5, 0) })
	w.coldStart()
	n1, n2 := w.hosts[0], w.hosts[1]
	report := w.writeUntilStopped(func() { w.lose(w.hosts[2], w.hosts[3], w.hosts[4]) })
	plan := w.plan([]string{"n3", "n4", "n5"}, n1, n2)
	for _, h := range []*host{n2, n1} {
		if text := h.apply(plan); text != "" {
			t.Fatal(text)
		}
	}
	n1.waitRecovered()
	n2.waitRecovered()
	for _, h := range []*host{n1, n2} {
		if plan.Survivor == "host-"+h.Options.Name {
			w.readBack(h, report)
		}
	}
	w.start(w.hosts[2:]...)
	w.within(3*formation, "there are 5 voters", func() bool { return w.has(5, 0) })
	w.checkData()
}

func TestAHostThatReturnsLateMovesItsDataAsideAndJoins(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.lose(n3)
	n2.powerOff()
	plan := w.plan([]string{"n2", "n3"}, n1)
	if text := n1.apply(plan); text != "" {
		t.Fatal(text)
	}
	n1.waitRecovered()
	w.start(n2)
	w.eventually("n2 has moved its data aside, and waits for a third host", func() bool {
		return n2.role() == policy.RoleSpare && n2.waitsFor(policy.EvenVoters)
	})
	w.start(n3)
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.checkData()
}

// coldStart cuts the power of all hosts at once and restores it. No operator recovers the cluster.
func (w *world) coldStart() {
	w.t.Helper()
	voters := len(w.members())
	for _, h := range w.hosts {
		h.powerOff()
	}
	w.start()
	w.within(2*formation, "all voters are back by themselves", func() bool { return w.has(voters, 0) })
}

func TestAClusterRecoversByItselfFromTenPowerLossesOfAllHosts(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	for i := range 10 {
		key := fmt.Sprintf("before/%d", i)
		_, err := w.hosts[0].etcd.Put(t.Context(), key, "x")
		must(t, err)
		w.coldStart()
		w.eventually("every acknowledged write is in the store", func() bool {
			answer, err := w.hosts[2].etcd.Get(t.Context(), key)
			return err == nil && len(answer.Kvs) == 1
		})
		for _, h := range w.hosts {
			if s, ok := h.status(); ok && (s.Recovery != nil || s.LastRecovery != nil) {
				t.Errorf("%s recovers: %+v", h.Options.Name, s.Recovery)
			}
		}
	}
}

func TestAnOperatorRecoversFromQuorumLossWithThreeCommands(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	report := w.writeUntilStopped(func() { w.lose(n2, n3) })
	n1.facts() // wait until n1 has no quorum
	file, plan := filepath.Join(w.dir, "n1.json"), filepath.Join(w.dir, "plan.json")
	output := me().ctl(n1, "recover", "collect")
	output.check(t, "recover collect", 0, `"host": "n1"`)
	if err := os.WriteFile(file, []byte(output.output), 0o600); err != nil {
		t.Fatal(err)
	}
	me().runCtl(t, "recover", "plan", file).check(t, "no host is named as gone", 70, "--gone n2,n3")
	shown := me().runCtl(t, "recover", "plan", file, "--gone", "n2,n3", "--out", plan)
	shown.check(t, "without the name", 64, "proposed: loses nothing", "n1 is the survivor", "--cluster NAME")
	t.Log("\n" + shown.output)
	me().runCtl(t, "recover", "plan", file, "--gone", "n2,n3", "--out", plan, "--cluster", "dome").check(t,
		"a wrong name",
		70, `the cluster is "demo"`)
	shown = me().runCtl(t, "recover", "plan", file, "--gone", "n2,n3", "--out", plan, "--cluster", clusterName)
	shown.check(t, "the plan", 0, "nothing has changed yet")
	t.Log("\n" + shown.output)
	n1.stopAt("before place-copy")
	shown = me().ctl(n1, "recover", "apply", plan)
	shown.check(t, "applied", 0, "this host is the survivor")
	t.Log("\n" + shown.output)
	n1.waitStopped()
	shown = me().ctl(n1, "recover", "status")
	shown.check(t, "while it continues", 0, "this host continues alone as cluster")
	t.Log("\n" + shown.output)
	n1.resume()
	shown = me().ctl(n1, "recover", "status", "--watch")
	shown.check(t, "at its end", 0, "has ended on this host", "RECOVERED")
	t.Log("\n" + shown.output)
	n1.waitRecovered()
	me().ctl(n1, "recover", "apply", plan).check(t, "applied again", 0, "is already complete on this host")
	w.readBack(n1, report)
}

// recoverySteps returns the steps of the survivor, in order.
func recoverySteps() []policy.StepKind {
	return []policy.StepKind{
		policy.StepStopForRecovery, policy.StepCopyData, policy.StepPlaceCopy, policy.StepStartUnit,
		policy.StepEndRecovery,
	}
}

// asideSteps returns the steps of a host that moves its data aside and joins the survivor, in order.
func asideSteps() []policy.StepKind {
	return []policy.StepKind{policy.StepStopForRecovery, policy.StepLayAside, policy.StepEndRecovery}
}

// recoveryOnlySteps returns the steps that only recoveries have. The tests crash the host at each of them.
func recoveryOnlySteps() []policy.StepKind {
	return []policy.StepKind{
		policy.StepStopForRecovery, policy.StepCopyData, policy.StepPlaceCopy, policy.StepLayAside,
		policy.StepEndRecovery,
	}
}

func TestCrashTestsCoverEveryRecoveryStep(t *testing.T) {
	t.Parallel()
	covered := slices.Concat(recoverySteps(), asideSteps(), snapshotSteps())
	for _, kind := range recoveryOnlySteps() {
		if !slices.Contains(covered, kind) {
			t.Errorf("%s is a step of a recovery, and no test crashes the host before and after it", kind)
		}
	}
}

// sides returns the two sides of a step. A crash before a step may have the effect of the step, such as the end of
// etcd, so each side has its own recovery.
func sides() []string { return []string{"before ", "after "} }

// crashRecovery applies a plan on a host and crashes the host on that side of each of these steps.
func (h *host) crashRecovery(what victim, side string, steps []policy.StepKind, apply func()) {
	h.w.t.Helper()
	h.stopAt(side + string(steps[0]))
	apply()
	for i, step := range steps {
		h.waitStopped()
		h.crash(side+string(step), what)
		if i+1 < len(steps) {
			h.stopAt(side + string(steps[i+1]))
		} else {
			h.resume()
		}
		h.w.start(h)
	}
	h.waitRecovered()
}

func TestARecoveryCompletesAlthoughItsAgentIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	crashSurvivor(t, agentOnly)
}

func crashSurvivor(t *testing.T, what victim) {
	for _, side := range sides() {
		t.Run(strings.TrimSpace(side)+" each step", func(t *testing.T) {
			t.Parallel()
			o := worldOptions{hosts: 3, voters: 3, powered: what == power}
			if o.powered && side == "after " { // a separate log disk is tested on this side only
				o.each = func(_ int, h *testbed.HostOptions) { logApart(h) }
			}
			w := allVoters(t, o)
			n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
			report := w.writeUntilStopped(func() { w.lose(n2, n3) })
			plan := w.plan([]string{"n2", "n3"}, n1)
			n1.crashRecovery(what, side, recoverySteps(), func() { n1.applyPlan(plan) })
			w.within(formation, "n1 serves alone", func() bool { return w.has(1, 0) })
			w.readBack(n1, report)
			w.start(n2, n3)
			w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
		})
	}
}

// crashAside crashes one of the two remaining hosts of five: the one that moves its data aside and joins the survivor.
func crashAside(t *testing.T, what victim, side string) {
	w := allVoters(t, worldOptions{hosts: 5, voters: 5, powered: what == power})
	survivor, other := w.hosts[0], w.hosts[1]
	report := w.writeUntilStopped(func() { w.lose(w.hosts[2:]...) })
	plan := w.plan([]string{"n3", "n4", "n5"}, survivor, other)
	if plan.Survivor != "host-"+survivor.Options.Name {
		survivor, other = other, survivor
	}
	other.crashRecovery(what, side, asideSteps(), func() {
		other.applyPlan(plan)
		survivor.applyPlan(plan)
	})
	survivor.waitRecovered()
	w.readBack(survivor, report)
	w.start(w.hosts[2:]...)
	w.within(3*formation, "there are 5 voters", func() bool { return w.has(5, 0) })
	w.checkData()
}

// applyPlan makes a host accept a plan.
func (h *host) applyPlan(p recovery.Plan) {
	h.w.t.Helper()
	if text := h.apply(p); text != "" {
		h.w.t.Fatal(text)
	}
}

func TestAPlanCanBeGivenUpUntilDataMovesAndCanBeAppliedAgain(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	report := w.writeUntilStopped(func() { w.lose(n2, n3) })
	file := filepath.Join(w.dir, "plan.json")
	text, err := json.Marshal(w.plan([]string{"n2", "n3"}, n1))
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	n1.stopAt("before " + string(policy.StepPlaceCopy))
	me().ctl(n1, "recover", "apply", file).check(t, "applied", 0, "this host is the survivor")
	n1.waitStopped()
	shown := me().ctl(n1, "recover", "give-up")
	shown.check(t, "given up", 0, "etcd starts again on its old data", "still applies on other hosts")
	t.Log("\n" + shown.output)
	n1.resume() // the step was decided before the plan was given up, and must now be refused
	n1.waitPlanEnded(policy.RecoveryGivenUp)
	w.eventually("etcd runs on its old data again", func() bool {
		pid, err := n1.EtcdPID(t.Context())
		return err == nil && pid != 0
	})
	me().ctl(n1, "recover", "give-up").check(t, "given up twice", 70, "none is in force")
	me().ctl(n1, "recover", "collect").check(t, "the plan that was given up is reported", 0, `"givenUp": true`)
	n1.stopAt("after " + string(policy.StepPlaceCopy))
	me().ctl(n1, "recover", "apply", file).check(t, "applied again", 0, "this host is the survivor")
	n1.waitStopped()
	me().ctl(n1, "recover", "give-up").check(t, "too late", 70, "begun to move its old data")
	n1.resume()
	n1.waitRecovered()
	w.readBack(n1, report)
}

// waitPlanEnded waits until the last plan of a host has ended with that code.
func (h *host) waitPlanEnded(code policy.ReasonCode) {
	h.w.t.Helper()
	h.w.eventually(h.Options.Name+" has ended the plan: "+string(code), func() bool {
		s, ok := h.status()
		return ok && s.Recovery == nil && s.LastRecovery != nil && s.LastRecovery.Code == code
	})
}
