// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// alarms maps etcd's alarms to the reason that hosts report while one is active.
func alarms() map[pb.AlarmType]policy.ReasonCode {
	return map[pb.AlarmType]policy.ReasonCode{
		pb.AlarmType_NOSPACE: policy.EtcdNoSpace, pb.AlarmType_CORRUPT: policy.EtcdCorrupt,
	}
}

// raiseAlarm activates an alarm on n1's member, as etcd itself would. The returned function disarms it as an operator
// does.
func (w *world) raiseAlarm(alarm pb.AlarmType) (disarm func()) {
	w.t.Helper()
	n1 := w.hosts[0]
	ctx := w.t.Context()
	members := w.members()
	i := slices.IndexFunc(members, func(m *pb.Member) bool { return m.Name == n1.Options.Name })
	if i < 0 {
		w.t.Fatalf("n1 is not a member: %v", members)
	}
	_, err := pb.NewMaintenanceClient(n1.etcd.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: alarm, MemberID: members[i].ID,
	})
	must(w.t, err)
	return func() {
		w.t.Helper()
		_, err := n1.etcd.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: members[i].ID, Alarm: alarm})
		must(w.t, err)
	}
}

// reports reports whether all these hosts have that reason, and name n1 as the member that raised the alarm.
func reports(code policy.ReasonCode, alarm pb.AlarmType, hosts ...*host) bool {
	return !slices.ContainsFunc(hosts, func(h *host) bool {
		s, ok := h.status()
		return !ok || !slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
			return r.Code == string(code) && strings.Contains(r.Text, "n1 raised the alarm "+alarm.String())
		})
	})
}

// expectNoAttempt checks that no agent takes or attempts a step during span. etcd itself refuses most steps while an
// alarm is active, so the member list alone would not show what the agents attempted.
func (w *world) expectNoAttempt(span time.Duration, hosts ...*host) {
	w.t.Helper()
	before := w.attemptedSteps(hosts)
	w.never(span, "an agent attempts a step", func() bool { return w.attemptedSteps(hosts) != before })
}

// attemptedSteps counts the steps that these agents have taken or attempted.
func (w *world) attemptedSteps(hosts []*host) (n float64) {
	w.t.Helper()
	for _, h := range hosts {
		var text string
		testbed.Eventually(w.t, bound, h.Options.Name+" reports its steps", func() (ok bool) {
			text, ok = h.fetch("/metrics")
			return ok
		})
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "quorumd_steps_total{") {
				count, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:len(line)-1], 64)
				must(w.t, err)
				n += count
			}
		}
	}
	return n
}

// isQualified reports whether the host has passed its qualification.
func (h *host) isQualified() bool {
	s, ok := h.status()
	return ok && s.Health.Qualified
}

func TestNoHostJoinsWhileAnAlarmIsActive(t *testing.T) {
	t.Parallel()
	for alarm, code := range alarms() {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: quickTimes()})
			n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
			w.start(n1)
			w.bootstrap()
			w.waitRolesAgree()
			disarm := w.raiseAlarm(alarm)
			w.start(n2, n3)
			w.eventually("the others are qualified, and all report the alarm", func() bool {
				return n2.isQualified() && n3.isQualified() && reports(code, alarm, n1, n2, n3)
			})
			w.expectNoAttempt(quiet, n1, n2, n3)
			if !w.has(1, 0) {
				t.Error("a host has joined")
			}
			disarm()
			w.eventually("the others join", func() bool { return w.has(3, 0) })
			w.waitRolesAgree()
		})
	}
}

func TestNoLearnerIsPromotedWhileAnAlarmIsActive(t *testing.T) {
	t.Parallel()
	for alarm, code := range alarms() {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			set := quickTimes()
			set["timing.promoteStable"], set["timing.steadyLag"] = "5s", "3s"
			set["timing.learnerMax"] = "120s"
			w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: set})
			n1, others := w.hosts[0], w.hosts[1:]
			w.start()
			w.bootstrap()
			w.eventually("a learner serves", func() bool {
				return w.has(1, 1) && slices.ContainsFunc(others, func(h *host) bool {
					return h.waitsFor(policy.LearnerNotSteady)
				})
			})
			disarm := w.raiseAlarm(alarm)
			w.eventually("all report it", func() bool { return reports(code, alarm, n1, others[0], others[1]) })
			w.expectNoAttempt(2*quiet, w.hosts...)
			if !w.has(1, 1) {
				t.Error("the learner votes, or was removed")
			}
			disarm()
			w.eventually("all vote", func() bool { return w.has(3, 0) })
			w.waitRolesAgree()
		})
	}
}

// hasAnswered reports whether a host has published its answer to the current revision of the operation in flight.
func (w *world) hasAnswered(h *host) bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), callTimeout)
	defer cancel()
	op, err := h.etcd.Get(ctx, w.keys().Op())
	if err != nil || len(op.Kvs) == 0 {
		return false
	}
	value, _ := w.get(w.keys().Host("host-" + h.Options.Name))
	r, err := record.Decode[record.Host]([]byte(value))
	return err == nil && r.Answers == op.Kvs[0].ModRevision
}

// TestNoDeadVoterIsRemovedWhileAnAlarmIsActive raises the alarm at the last moment: the replacing host has already
// recorded that it may remove the member, and etcd itself would accept the removal.
func TestNoDeadVoterIsRemovedWhileAnAlarmIsActive(t *testing.T) {
	t.Parallel()
	for alarm, code := range alarms() {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			w := repairWorld(t, 1)
			n1, n2, n3, n4 := w.hosts[0], w.hosts[1], w.hosts[2], w.hosts[3]
			n4.stopAt("after set-phase/removing")
			n3.powerOff()
			w.within(grace+bound, "n4 is about to have n3 removed", n4.stopped)
			w.eventually("the others have published their view of it again", func() bool {
				return w.hasAnswered(n1) && w.hasAnswered(n2)
			})
			disarm := w.raiseAlarm(alarm)
			n4.resume()
			w.eventually("all report it", func() bool { return reports(code, alarm, n1, n2, n4) })
			w.expectNoAttempt(2*quiet, n1, n2, n4)
			if listed, _ := w.is(n3); !listed {
				t.Error("n3 was removed")
			}
			disarm()
			w.replaced(n3)
			w.verify(3, 0)
		})
	}
}
