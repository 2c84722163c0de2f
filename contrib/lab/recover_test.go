//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// loseUnderWrites cuts the power of hosts while clients write through the first host, which survives. That host has
// applied every write that it acknowledged, so all of them must be in the store in the end.
func (f *bareFleet) loseUnderWrites(lost ...*lab.Host) testbed.LoadReport {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	// The keys of each round have the same names, so remove those of an earlier round: they would hide a loss.
	_, err := f.etcds[f.Hosts[0]].Delete(ctx, "load/", clientv3.WithPrefix())
	f.check(err)
	load, err := testbed.StartWriteLoad(f.t.Context(), testbed.LoadOptions{
		Endpoints: []string{f.url(f.Hosts[0])}, TLS: f.tls(), Rate: 100,
	})
	f.check(err)
	defer load.Stop()
	f.eventually("200 writes are acknowledged", func() bool { return load.Report().Acked > 200 })
	f.check(f.Each(func(h *lab.Host) error {
		if !slices.Contains(lost, h) {
			return nil
		}
		return h.PowerLoss(f.t.Context())
	}))
	report := load.Stop()
	f.t.Logf("%d writes were acknowledged, and %d failed, when %d hosts lost power", report.Acked, report.Failed,
		len(lost))
	return report
}

// makePlan types the first two of the three commands of contrib/docs/disaster-recovery.md, and returns the third.
func (f *bareFleet) makePlan(left, gone []*lab.Host) (apply string) {
	f.t.Helper()
	commands := documentedCommands(f.t, "disaster-recovery.md", "you$")
	if len(commands) != 3 {
		f.t.Fatalf("the page has %d commands for operators with ssh, want three: %q", len(commands), commands)
	}
	f.check(os.RemoveAll(filepath.Join(f.operatorDir, "plan.json"))) // quorumctl does not overwrite an earlier plan
	var names, files, others []string
	for _, h := range left {
		names, files = append(names, h.Name), append(files, h.Name+".json")
		f.eventually(h.Name+" observes no quorum, and reports that in its facts", func() bool {
			return f.hasReason(h, string(policy.NoQuorum)) && !f.seesQuorum(h)
		})
	}
	for _, h := range gone {
		others = append(others, h.Name)
	}
	for i := range commands {
		commands[i] = strings.NewReplacer("for h in n1 n2;", "for h in "+strings.Join(names, " ")+";",
			"n1.json n2.json", strings.Join(files, " "), "--gone n3,n4,n5", "--gone "+strings.Join(others, ","),
			"--cluster demo", "--cluster prod").Replace(commands[i])
	}
	for _, command := range commands[:2] {
		f.t.Logf("you$ %s\n%s", command, f.runAsOperator(command))
	}
	return commands[2]
}

// seesQuorum reports whether a host's facts still report a quorum. They do so for some seconds after the loss.
func (f *bareFleet) seesQuorum(h *lab.Host) bool {
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	facts, err := control.Dial(h.Path("/run/quorumd/control.sock")).RecoveryFacts(ctx)
	return err != nil || facts.Quorum
}

// waitRecovered waits until a host has carried out its part of a plan made after that time.
func (f *bareFleet) waitRecovered(h *lab.Host, since time.Time) {
	f.t.Helper()
	f.eventually(h.Name+" has carried out its part of the plan", func() bool {
		s, ok := f.status(h)
		return ok && s.Recovery == nil && s.LastRecovery != nil && s.LastRecovery.Ended.After(since) &&
			s.LastRecovery.Code == policy.Recovered
	})
}

// checkReadBack checks that every acknowledged write is in the store, and that watchers must read again.
func (f *bareFleet) checkReadBack(h *lab.Host, report testbed.LoadReport) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), bound)
	defer cancel()
	last, err := report.ReadBack(ctx, f.etcds[h], "load/")
	f.check(err)
	f.check(testbed.CheckCompacted(ctx, f.etcds[h], last))
	f.t.Logf("all %d writes are there, and a watch from revision %d has to read again", report.Acked, last)
}

// powerOnEmpty powers on hosts whose disks were replaced by new ones.
func (f *bareFleet) powerOnEmpty(hosts ...*lab.Host) {
	f.t.Helper()
	for _, h := range hosts {
		f.check(h.Renew(f.t.Context()))
		f.check(h.PowerOn(f.t.Context()))
		f.check(h.Booted(f.t.Context()))
	}
}

// movedAsideOn returns the directories to which a host has moved old data.
func (f *fleet) movedAsideOn(h *lab.Host) []string {
	f.t.Helper()
	return strings.Fields(f.shell(h, "find /var/lib/etcd -type d -name 'member.quorumd-*'"))
}

// With several rounds the recovered cluster loses its majority repeatedly.
func TestQuorumLossOfThreeIsRecoveredByTheThreeDocumentedCommands(t *testing.T) {
	f := newBareFleet(t, 3)
	f.bootstrapAsDocumented()
	for range *rounds {
		f.loseTwoOfThree()
	}
}

func (f *bareFleet) loseTwoOfThree() {
	t := f.t
	t.Helper()
	n1, n2, n3 := f.Hosts[0], f.Hosts[1], f.Hosts[2]
	report := f.loseUnderWrites(n2, n3)
	began := time.Now()
	apply := f.makePlan([]*lab.Host{n1}, []*lab.Host{n2, n3})
	t.Logf("you$ %s\n%s", apply, f.runAsOperator(apply))
	f.waitRecovered(n1, began)
	t.Logf("n1 serves again %s after the first command\n%s", time.Since(began).Round(time.Second),
		f.shell(n1, "quorumctl recover status"))
	f.checkReadBack(n1, report)
	if !f.has(1, 0) {
		t.Errorf("the members are %v", f.roles())
	}
	t.Logf("you$ %s\n%s", apply, f.runAsOperator(apply)) // once more: it is done already

	f.check(n3.PowerOn(t.Context())) // a host that the plan names as gone returns with its old data
	f.check(n3.Booted(t.Context()))
	f.eventually("n3 moves its data aside, and waits for a third host", func() bool {
		s, ok := f.status(n3)
		return ok && s.Role == policy.RoleSpare && f.hasReason(n3, string(policy.EvenVoters))
	})
	if aside := f.movedAsideOn(n3); len(aside) == 0 {
		t.Error("n3 has not moved its old data aside")
	}
	f.powerOnEmpty(n2)
	f.within(2*bound, "there are 3 voters", func() bool { return f.has(3, 0) })
	f.checkReadBack(n3, report)
}

func TestQuorumLossOfFiveIsRecoveredByTheThreeDocumentedCommands(t *testing.T) {
	f := newBareFleet(t, 5)
	f.bootstrapAsDocumented()
	for range *rounds {
		f.loseThreeOfFive()
	}
}

func (f *bareFleet) loseThreeOfFive() {
	t := f.t
	t.Helper()
	left, gone := f.Hosts[:2], f.Hosts[2:]
	report := f.loseUnderWrites(gone...)
	began := time.Now()
	apply := f.makePlan(left, gone)
	t.Logf("you$ %s\n%s", apply, f.runAsOperator(apply))
	var survivor *lab.Host
	for _, h := range left {
		f.waitRecovered(h, began)
		s, ok := f.status(h)
		switch {
		case ok && s.LastRecovery != nil && s.LastRecovery.Alone && survivor == nil:
			survivor = h
		case len(f.movedAsideOn(h)) == 0:
			t.Errorf("%s does not continue alone, and has not moved its old data aside", h.Name)
		}
	}
	if survivor == nil {
		t.Fatal("no host continues alone")
	}
	t.Logf("%s serves again %s after the first command", survivor.Name, time.Since(began).Round(time.Second))
	f.checkReadBack(survivor, report)
	if !f.has(1, 0) {
		t.Errorf("the members are %v", f.roles())
	}
	f.powerOnEmpty(gone...)
	f.within(4*bound, "there are 5 voters", func() bool { return f.has(5, 0) })
	for _, h := range f.Hosts {
		f.checkReadBack(h, report)
	}
}

// TestASurvivorCompletesAPlanDespiteRepeatedPowerLosses cuts the survivor's power at each step that is visible from
// outside. The operator does not repeat any command.
func TestASurvivorCompletesAPlanDespiteRepeatedPowerLosses(t *testing.T) {
	f := newBareFleet(t, 3)
	f.bootstrapAsDocumented()
	n1, gone := f.Hosts[0], f.Hosts[1:]
	report, began := f.loseUnderWrites(gone...), time.Now()
	apply := f.makePlan(f.Hosts[:1], gone)
	t.Logf("you$ %s\n%s", apply, f.runAsOperator(apply))
	data := "/var/lib/etcd/*/"
	for _, moment := range []struct {
		what string
		now  func() bool
	}{
		{"it has accepted the plan", func() bool { return true }},
		{"its etcd is stopped", func() bool { s, ok := f.status(n1); return ok && s.Unit.State == "inactive" }},
		{"the copy has begun", func() bool { return f.fileExists(n1, data+"quorumd-recover-*") }},
		{"its old data was moved aside", func() bool { return f.fileExists(n1, data+"member.quorumd-*") }},
		{"its etcd serves", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
			defer cancel()
			_, err := f.etcds[n1].Get(ctx, "/")
			return err == nil
		}},
	} {
		testbed.Eventually(t, bound, moment.what, moment.now)
		f.check(n1.PowerLoss(t.Context()))
		t.Logf("n1 loses its power when %s", moment.what)
		f.check(n1.PowerOn(t.Context()))
		f.check(n1.Booted(t.Context()))
	}
	f.waitRecovered(n1, began)
	f.checkReadBack(n1, report)
	if aside := f.movedAsideOn(n1); len(aside) != 1 {
		t.Errorf("old data was moved aside as %v, want once", aside)
	}
	f.powerOnEmpty(gone...)
	f.within(2*bound, "there are 3 voters", func() bool { return f.has(3, 0) })
	f.checkReadBack(gone[0], report)
}

// fileExists reports whether a file on a host matches a pattern.
func (f *bareFleet) fileExists(h *lab.Host, pattern string) bool {
	found, err := filepath.Glob(h.Path(pattern))
	return err == nil && len(found) > 0
}
