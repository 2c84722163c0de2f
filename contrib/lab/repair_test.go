//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// grace is the shortest time after which quorumd may replace a dead voter.
	grace = 30 * time.Second
	// replaceBound is how long after the grace period a standby becomes a voter in place of a host that has lost power,
	// on an otherwise idle machine.
	replaceBound = 15 * time.Second
)

// TestTheStandbyReplacesADeadLeaderWhichReturnsHarmlessly cuts the leader's power under writes.
func TestTheStandbyReplacesADeadLeaderWhichReturnsHarmlessly(t *testing.T) {
	f := formedFleetRunning(t)
	f.enableRepair(func(lab.Settings) {})
	standby, dead := f.role(policy.RoleStandby)[0], f.leader()
	f.cutPowerAndWaitReplaced(dead)
	f.eventually(standby.Name+", which was the standby, votes", func() bool { return f.is(standby, policy.RoleVoter) })
	f.eventually("the spare is the standby now", func() bool { return f.has(3, 1) && f.isIdle() })
	f.checkHarmlessReturn(dead)
	f.checkHeld()
}

// TestASpareReplacesADeadFollowerAndThenADeadLeader has no standby. The second replacement is the last one within the
// daily limit.
func TestASpareReplacesADeadFollowerAndThenADeadLeader(t *testing.T) {
	f := formedFleetRunning(t)
	f.enableRepair(func(s lab.Settings) { s["cluster"]["standbys"] = 0 })
	f.removeStandby()
	f.verify(3, 0)
	follower := f.follower(nil)
	f.cutPowerAndWaitReplaced(follower)
	leader := f.leader()
	f.cutPowerAndWaitReplaced(leader)

	f.check(follower.PowerOn(t.Context()))
	f.eventually(follower.Name+" is a spare when it is back", func() bool { return f.is(follower, policy.RoleSpare) })
	third := f.follower(nil)
	f.check(third.PowerLoss(t.Context()))
	f.eventually("a host reports why no third voter is replaced without an operator", func() bool {
		return f.waitsFor(follower, "REPAIR_LIMIT_REACHED", "2 voters were replaced in the last 24 hours "+
			"(limit: 2)")
	})
	f.never(5*time.Second, third.Name+" is replaced anyway", func() bool { return f.fullWithout(third) })
	f.check(third.PowerOn(t.Context()))
	f.check(leader.PowerOn(t.Context()))
	f.verify(3, 0)
	f.eventually("all hosts are back", func() bool {
		return len(f.role(policy.RoleVoter)) == 3 && len(f.role(policy.RoleSpare)) == 2
	})
	f.checkHeld()
}

// enableRepair restarts all agents, configured to replace dead voters from now on.
func (f *fleet) enableRepair(change func(lab.Settings)) {
	f.t.Helper()
	f.killed = true // a host that loses power may be unable to record the beginning of its operation
	f.check(f.Each(func(h *lab.Host) error {
		s := h.Settings()
		s["repair"] = map[string]any{"dead": grace.String(), "cleanFor": "0s"}
		change(s)
		if err := h.Configure("manage", s); err != nil {
			return err
		}
		_, err := h.Shell(f.t.Context(), "systemctl restart quorumd")
		return err
	}))
	f.eventually("all agents are back", func() bool {
		return len(f.role(policy.RoleVoter))+len(f.role(policy.RoleStandby))+len(f.role(policy.RoleSpare)) ==
			len(f.Hosts)
	})
}

// cutPowerAndWaitReplaced cuts a voter's power under writes, and waits until another host has become a voter in its
// place.
func (f *fleet) cutPowerAndWaitReplaced(dead *lab.Host) {
	f.t.Helper()
	load := f.load(dead)
	defer load.Stop()
	f.check(dead.PowerLoss(f.t.Context()))
	began := time.Now()
	last := map[string]string{}
	f.within(grace+bound, "another host replaces "+dead.Name, func() bool {
		f.logReports(last, began)
		return f.fullWithout(dead)
	})
	took := time.Since(began)
	f.eventually("the replacement has ended", f.isIdle)
	f.checkRecords()
	f.checkHistory()
	report := load.Stop()
	f.t.Logf("full strength %.1f s after %s lost power, with a grace period of %v; %d writes acknowledged, %d failed, "+
		"longest gap %v, and %v while it was replaced", took.Seconds(), dead.Name, grace, report.Acked, report.Failed,
		report.LongestGap.Round(time.Millisecond), report.GapWithin(began.Add(grace), began.Add(took)))
	if took < grace {
		f.t.Errorf("%s was replaced %v after it lost power, the grace is %v", dead.Name, took, grace)
	}
	if took > grace+replaceBound && *rounds >= roundsToJudge {
		f.t.Errorf("%s was replaced after %v, want %v at most", dead.Name, took, grace+replaceBound)
	}
	f.checkWrites(report)
	f.checkRepairHistory(dead)
}

// checkRepairHistory checks that the history records which host replaced which.
func (f *fleet) checkRepairHistory(dead *lab.Host) {
	f.t.Helper()
	f.eventually("the history records that "+dead.Name+" was replaced", func() bool {
		lines, err := f.history()
		if err != nil {
			return false
		}
		for _, l := range slices.Backward(lines) {
			if l.Kind == "operation" && strings.Contains(l.Text, "in place of "+dead.Name+", ") {
				f.t.Logf("history: %s %s: %s", l.Name, l.Code, l.Text)
				return l.Code == "JOINED"
			}
		}
		return false
	})
}

// load writes through all voters but one. Each write has 20 s, and the client may send it more than once: an election
// on a busy machine takes seconds.
func (f *fleet) load(but *lab.Host) *testbed.WriteLoad {
	f.t.Helper()
	var endpoints []string
	for _, h := range f.role(policy.RoleVoter) {
		if h != but {
			endpoints = append(endpoints, h.ClientURL())
		}
	}
	load, err := testbed.StartWriteLoad(f.t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, Rate: 50, Retry: true, Timeout: 20 * time.Second,
		Prefix: fmt.Sprintf("load/%d/", time.Now().UnixNano()),
	})
	f.check(err)
	return load
}

// checkWrites checks that there were writes, that none failed, and that every acknowledged write is still in the store.
func (f *fleet) checkWrites(report testbed.LoadReport) {
	f.t.Helper()
	if report.Failed > 0 || report.Acked == 0 {
		f.t.Errorf("%d writes failed, and %d were acknowledged", report.Failed, report.Acked)
	}
	client, err := f.client()
	f.check(err)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	answer, err := client.Get(ctx, "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	f.check(err)
	there := map[string]bool{}
	for _, kv := range answer.Kvs {
		there[string(kv.Key)] = true
	}
	for _, write := range report.Writes {
		if !write.Acked.IsZero() && !there[write.Key] {
			f.t.Errorf("write %s was acknowledged, and is lost", write.Key)
		}
	}
}

// checkHeld checks that the start guard is set on hosts without a member, and on no other host.
func (f *fleet) checkHeld() {
	f.t.Helper()
	for _, h := range f.Hosts {
		want := f.is(h, policy.RoleSpare)
		f.eventually(fmt.Sprintf("the start guard is set on %s: %v", h.Name, want), func() bool {
			_, err := h.Run(f.t.Context(), "test", "-e", "/var/lib/quorumd-etcd/etcd.hold")
			return (err == nil) == want
		})
	}
}

// fullWithout reports whether three members vote, all of them started, and the given host is not a member.
func (f *fleet) fullWithout(dead *lab.Host) bool {
	voters := 0
	for _, m := range f.members() {
		if m.Name == dead.Name || m.Name == "" {
			return false
		}
		if !m.IsLearner {
			voters++
		}
	}
	return voters == 3
}

// logReports logs each change of a host's first reason, ignoring its numbers.
func (f *fleet) logReports(last map[string]string, began time.Time) {
	for _, h := range f.Hosts {
		s, ok := f.status(h)
		if !ok || len(s.Reasons) == 0 {
			continue
		}
		text := s.Reasons[0].Code + ": " + s.Reasons[0].Text
		bare := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, text)
		if last[h.Name] != bare {
			last[h.Name] = bare
			f.t.Logf("%6.1f s: %s: %s", time.Since(began).Seconds(), h.Name, text)
		}
	}
}
