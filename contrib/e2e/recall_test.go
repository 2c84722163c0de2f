// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// shippedTimes returns the default times on which the return of a host depends.
func shippedTimes() map[string]string {
	return map[string]string{
		"timing.interval": "2s", "timing.callTimeout": "2s", "timing.lockTTL": "30s", "timing.renewEvery": "5s",
		"timing.renewGiveUp": "15s", "timing.hostRecordTTL": "60s", "timing.settle": "6s",
	}
}

// inMaintenance takes the host down for maintenance, and waits until it is safe to touch.
func (h *host) inMaintenance(interruptible bool) {
	h.w.t.Helper()
	h.request(control.MaintenanceRequest{
		Work: policy.WorkMaintenance, Interruptible: interruptible, Reason: "a new kernel",
	})
	h.w.eventually(h.Options.Name+" is safe to touch", func() bool { return h.maintenance() == policy.RequestSafe })
}

// acceptsWrite reports whether the etcd of this host acknowledges a write.
func (h *host) acceptsWrite() bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := h.etcd.Put(ctx, "/written", "yes")
	return err == nil
}

func TestAHostInInterruptibleMaintenanceReturnsWhenTheQuorumIsLost(t *testing.T) {
	t.Parallel()
	w := allVoters(t, worldOptions{hosts: 3, voters: 3, set: shippedTimes()})
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	n3.inMaintenance(true)
	failed := time.Now()
	n2.powerOff()
	w.eventually("n1's agent observes that there is no quorum", func() bool { return n1.hasReason(policy.NoQuorum) })
	w.eventually("n3's etcd runs", n3.etcdRuns)
	started := time.Since(failed)
	w.eventually("the cluster accepts a write", n1.acceptsWrite)
	t.Logf("after a voter failed, etcd was started again after %.1f s and the first write succeeded after %.1f s",
		started.Seconds(), time.Since(failed).Seconds())
	w.eventually("n3's operation has ended", func() bool { return n3.endedWith(policy.Recalled) })
	s, _ := n3.status()
	if want := "no quorum: n1 answers, but has no leader"; !strings.Contains(s.LastMaintenance.Text, want) {
		t.Errorf("the maintenance ended with %q, want %q in it", s.LastMaintenance.Text, want)
	}
	lines, err := w.history()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(lines, func(l record.Line) bool { return l.Outcome == string(policy.Recalled) }) {
		t.Error("the history does not report that the maintenance was called off")
	}
	w.start(n2)
	w.verify(3, 0)
}

func TestAHostInOtherMaintenanceStaysDownWhenTheQuorumIsLost(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	n3.inMaintenance(false)
	n2.powerOff()
	w.eventually("n3 reports that the cluster needs it", func() bool {
		return n3.reasonIs(policy.InMaintenance, "its maintenance is not interruptible")
	})
	w.never(quiet, "n3's etcd was started during its maintenance", n3.etcdRuns)
	n3.endMaintenance() // an operator needs no quorum for that
	w.eventually("the cluster accepts a write", n1.acceptsWrite)
	w.eventually("n3 is back", func() bool { return n3.endedWith(policy.Cycled) })
	w.start(n2)
	w.verify(3, 0)
}

func TestAHostThatReachesNoMemberStaysInItsInterruptibleMaintenance(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	n3.inMaintenance(true)
	n1.signalEtcd(syscall.SIGSTOP)
	n2.powerOff()
	w.eventually("n3 observes that no voter answers", func() bool {
		s, ok := n3.status()
		return ok && !s.Cluster.Reachable && s.Reasons[0].Code == string(policy.InMaintenance)
	})
	w.never(quiet, "n3's etcd was started although n3 reaches no member", n3.etcdRuns)
	n1.signalEtcd(syscall.SIGCONT)
	w.eventually("n3's etcd runs as soon as n1 answers", n3.etcdRuns)
	w.start(n2)
	w.verify(3, 0)
}

func TestAHostInInterruptibleMaintenanceReturnsWhenFiveVotersTolerateNoFailure(t *testing.T) {
	t.Parallel()
	w := allVoters(t, worldOptions{hosts: 5, voters: 5})
	n4, n5 := w.hosts[3], w.hosts[4]
	n5.inMaintenance(true)
	failed := time.Now()
	n4.powerOff()
	w.eventually("n5's etcd runs", n5.etcdRuns)
	t.Logf("etcd was started again %.1f s after the failure", time.Since(failed).Seconds())
	w.eventually("n5's operation has ended", func() bool { return n5.endedWith(policy.Recalled) })
	w.start(n4)
	w.verify(5, 0)
}
