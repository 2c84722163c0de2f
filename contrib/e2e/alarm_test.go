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

// alarms are those of etcd's, with what the hosts say while one stands.
func alarms() map[pb.AlarmType]policy.ReasonCode {
	return map[pb.AlarmType]policy.ReasonCode{
		pb.AlarmType_NOSPACE: policy.EtcdNoSpace, pb.AlarmType_CORRUPT: policy.EtcdCorrupt,
	}
}

// raise has n1's member raise an alarm, as its etcd does by itself, and gives what ends it as a person does.
func (w *world) raise(alarm pb.AlarmType) (disarm func()) {
	w.t.Helper()
	n1 := w.hosts[0]
	ctx := w.t.Context()
	members := w.members()
	i := slices.IndexFunc(members, func(m *pb.Member) bool { return m.Name == n1.Options.Name })
	if i < 0 {
		w.t.Fatalf("n1 is no member: %v", members)
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

// tells tells whether all these hosts give that reason, with who has raised the alarm.
func tells(code policy.ReasonCode, alarm pb.AlarmType, hosts ...*host) bool {
	return !slices.ContainsFunc(hosts, func(h *host) bool {
		s, ok := h.status()
		return !ok || !slices.ContainsFunc(s.Reasons, func(r control.Reason) bool {
			return r.Code == string(code) && strings.Contains(r.Text, "n1 has raised the alarm "+alarm.String())
		})
	})
}

// tryNothing sees that for so long no agent takes a step, or tries one: etcd itself refuses most of them while an alarm
// stands, so that what became of the members says little of what the agents made of it.
func (w *world) tryNothing(span time.Duration, hosts ...*host) {
	w.t.Helper()
	before := w.tried(hosts)
	w.never(span, "a step is tried", func() bool { return w.tried(hosts) != before })
}

// tried counts the steps that these agents have taken or tried.
func (w *world) tried(hosts []*host) (n float64) {
	w.t.Helper()
	for _, h := range hosts {
		var text string
		testbed.Eventually(w.t, bound, h.Options.Name+" tells of its steps", func() (told bool) {
			text, told = h.fetch("/metrics")
			return told
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

// qualified tells whether the host has passed its qualifying run.
func (h *host) qualified() bool {
	s, ok := h.status()
	return ok && s.Health.Qualified
}

func TestWhileAnAlarmStandsNobodyJoins(t *testing.T) {
	t.Parallel()
	for alarm, code := range alarms() {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: quickTimes()})
			n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
			w.start(n1)
			w.bootstrap()
			w.rolesAgree()
			disarm := w.raise(alarm)
			w.start(n2, n3)
			w.eventually("the others are fit, and all say so", func() bool {
				return n2.qualified() && n3.qualified() && tells(code, alarm, n1, n2, n3)
			})
			w.tryNothing(quiet, n1, n2, n3)
			if !w.has(1, 0) {
				t.Error("a host has joined")
			}
			disarm()
			w.eventually("the others join", func() bool { return w.has(3, 0) })
			w.rolesAgree()
		})
	}
}

func TestWhileAnAlarmStandsNobodyIsPromoted(t *testing.T) {
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
			disarm := w.raise(alarm)
			w.eventually("all say so", func() bool { return tells(code, alarm, n1, others[0], others[1]) })
			w.tryNothing(2*quiet, w.hosts...)
			if !w.has(1, 1) {
				t.Error("the learner votes, or was taken out")
			}
			disarm()
			w.eventually("all vote", func() bool { return w.has(3, 0) })
			w.rolesAgree()
		})
	}
}

// answered tells whether a host has answered the operation that is in flight.
func (w *world) answered(h *host) bool {
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

// TestWhileAnAlarmStandsNoDeadVoterIsRemoved raises it at the last moment: who takes the place has recorded that etcd
// may be told, and etcd would remove a member all the same.
func TestWhileAnAlarmStandsNoDeadVoterIsRemoved(t *testing.T) {
	t.Parallel()
	for alarm, code := range alarms() {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			w := repairWorld(t, 1)
			n1, n2, n3, n4 := w.hosts[0], w.hosts[1], w.hosts[2], w.hosts[3]
			n4.stopAt("after set-phase/removing")
			n3.die()
			w.within(grace+bound, "n4 is about to have n3 removed", n4.stopped)
			w.eventually("the others have told anew what they see of it", func() bool {
				return w.answered(n1) && w.answered(n2)
			})
			disarm := w.raise(alarm)
			n4.resume()
			w.eventually("all say so", func() bool { return tells(code, alarm, n1, n2, n4) })
			w.tryNothing(2*quiet, n1, n2, n4)
			if listed, _ := w.is(n3); !listed {
				t.Error("n3 was removed")
			}
			disarm()
			w.replaced(n3)
			w.verify(3, 0)
		})
	}
}
