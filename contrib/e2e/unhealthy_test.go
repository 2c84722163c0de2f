// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// unhealthyGrace is the shortest grace period that the configuration allows.
	unhealthyGrace = 30 * time.Second
	// stillSlow is the additional time for which a voter must have been slow: if its writes are fast again, it reports
	// that within this time.
	stillSlow = 90 * time.Second
	// unhealthyFsync is the delay of each sync. 512 ms is the limit of a bucket in etcd's histogram, so etcd counts
	// every sync as longer than that.
	unhealthyFsync = 600 * time.Millisecond
	// rejoinBound bounds the time from the recovery of a disk until its host has joined again.
	rejoinBound = 6 * time.Minute
)

// unhealthyWorld is a world of three voters (n1, n2, n3), and n4 as a standby or a spare. n3's disk can be slowed down.
// All accesses of clients and all membership changes are recorded.
type unhealthyWorld struct {
	*world
	disk      *testbed.Mount
	load      *testbed.WriteLoad
	registers *testbed.Registers
	watch     *watch
}

func newUnhealthyWorld(t *testing.T, standbys int) *unhealthyWorld {
	return newUnhealthyWorldWith(t, worldOptions{standbys: standbys})
}

func newUnhealthyWorldWith(t *testing.T, o worldOptions) *unhealthyWorld {
	t.Helper()
	s := &unhealthyWorld{}
	set := map[string]string{
		"repair.unhealthy": unhealthyGrace.String(), "repair.cleanFor": "5s",
		"timing.interval": "1s", "timing.callTimeout": "2500ms", "timing.lockTTL": "15s", "timing.transferInterval": "5s",
		"disk.directInterval": "1s", "disk.walInterval": "1s",
		// disk.fsyncSlow is the limit by which the deciding host judges the histogram of n3's etcd
		"disk.fsyncClear": "200ms", "disk.fsyncWarm": "350ms", "disk.fsyncSlow": "400ms",
	}
	maps.Copy(set, o.set)
	o.hosts, o.set = 4, set
	o.each = func(i int, o *testbed.HostOptions) {
		if i == 3 {
			s.disk = faulty(t, o, map[string]string{
				"disk.fsyncWarm": "250ms", "disk.stall": "10s",
			})
		}
	}
	s.world = newWorld(t, o)
	t.Cleanup(func() { clearRules(t, s.disk) })
	s.start(s.hosts[:3]...)
	s.bootstrap()
	s.within(2*formation, "there are 3 voters", func() bool { return s.has(3, 0) })
	s.start(s.hosts[3])
	s.within(2*formation, "n4 is ready", func() bool { return s.has(3, o.standbys) && s.hosts[3].healthy() })
	s.waitRolesAgree()
	return s
}

// startClients starts clients, and records all their accesses and which hosts are members.
func (s *unhealthyWorld) startClients() {
	s.t.Helper()
	s.load = s.writes(20)
	registers, err := testbed.StartRegisters(s.t.Context(), s.listening())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(registers.Close)
	s.registers = registers
	s.watch = s.watchMembers(s.hosts[1])
}

// makeUnhealthy makes n3's disk slow while clients are at work.
func (s *unhealthyWorld) makeUnhealthy() {
	s.t.Helper()
	s.startClients()
	rule(s.t, s.disk, "fsync * delay="+unhealthyFsync.String())
	s.waitUnhealthy("SLOW", "99 of 100 WAL fsyncs of its etcd take up to")
}

// waitUnhealthy waits until n1 reports n3 as unhealthy, with that health state and that evidence.
func (s *unhealthyWorld) waitUnhealthy(state, witness string) {
	s.t.Helper()
	s.eventually("n1 reports n3 as unhealthy: it is "+state+", and "+witness, func() bool {
		now, ok := s.hosts[0].status()
		return ok && slices.ContainsFunc(now.Reasons, func(r control.Reason) bool {
			return r.Code == string(policy.VoterUnhealthy) && strings.Contains(r.Text, state) &&
				strings.Contains(r.Text, witness)
		})
	})
	s.show("status")
}

// show logs the output of quorumctl.
func (s *unhealthyWorld) show(args ...string) {
	s.t.Helper()
	s.t.Logf("n1# quorumctl %s\n%s", strings.Join(args, " "), me().ctl(s.hosts[0], args...).output)
}

// expectReplaced waits until n4 votes in n3's place, and checks the order of the membership changes.
func (s *unhealthyWorld) expectReplaced(members ...string) {
	s.t.Helper()
	began := time.Now()
	n3 := s.hosts[2]
	s.within(unhealthyGrace+stillSlow+bound, "n4 votes in n3's place", func() bool {
		listed, _ := s.is(n3)
		return !listed && s.has(3, 0) && !s.busy()
	})
	s.t.Logf("n3 was gone %.1f s after it was reported as unhealthy, with a grace period of %v",
		time.Since(began).Seconds(), unhealthyGrace)
	s.eventually("n3's etcd is stopped", func() bool { return n3.etcdPID() == 0 })
	s.show("status")
	s.show("history")
	if seen, led := s.watch.stop(); !slices.Equal(seen, members) || led {
		s.t.Errorf("the members were %q, not %q; n3 led until it was removed: %v", seen, members, led)
	}
	s.checkStepOrder(policy.StepBeginReplace, policy.StepPromote, policy.StepRemoveMember)
}

// checkStepOrder checks that these steps were taken in this order, and that the replacement succeeded.
func (s *unhealthyWorld) checkStepOrder(want ...policy.StepKind) {
	s.t.Helper()
	lines, err := s.history()
	if err != nil {
		s.t.Fatal(err)
	}
	var steps []string
	ended := ""
	for _, l := range lines {
		if steps = append(steps, l.Code); l.Kind == "operation" && strings.HasPrefix(l.Text, "replacement by n4 ") {
			ended = l.Code + ": " + l.Text
		}
		if len(want) > 0 && l.Code == string(want[0]) && l.Outcome == record.StepOK {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		s.t.Errorf("%s is missing or out of order: %q", want[0], steps)
	}
	if !strings.Contains(ended, "JOINED: ") || !strings.Contains(ended, "in place of n3") {
		s.t.Errorf("the history has %q", ended)
	}
}

// checkClients checks that no acknowledged write is lost, and that all accesses of clients are linearizable. It returns
// the longest time without an acknowledged write.
func (s *unhealthyWorld) checkClients() (gap time.Duration) {
	s.t.Helper()
	report := s.load.Stop()
	s.t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	s.linearizable(s.registers)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	answer, err := s.hosts[1].etcd.Get(ctx, "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		s.t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, kv := range answer.Kvs {
		stored[string(kv.Key)] = true
	}
	for _, write := range report.Writes {
		if !write.Acked.IsZero() && !stored[write.Key] {
			s.t.Errorf("%s was acknowledged, and is lost", write.Key)
		}
	}
	return report.LongestGap
}

// watch records the members of the cluster after each change.
type watch struct {
	cancel  context.CancelFunc
	stopped chan struct{}
	seen    []string // such as "n1 n2 n3 (n4)", with learners in parentheses
	led     bool     // whether n3 led when it was last seen as a member
}

// watchMembers polls one host's etcd until the watch is stopped.
func (s *unhealthyWorld) watchMembers(by *host) *watch {
	ctx, cancel := context.WithCancel(s.t.Context())
	w := &watch{cancel: cancel, stopped: make(chan struct{})}
	s.t.Cleanup(func() { w.stop() })
	unhealthy := s.hosts[2]
	go func() {
		defer close(w.stopped)
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			leader := s.leader(by)
			list, err := by.members()
			if err != nil {
				continue
			}
			if now := s.memberNames(list); len(w.seen) == 0 || w.seen[len(w.seen)-1] != now {
				w.seen = append(w.seen, now)
			}
			if i := slices.IndexFunc(list, unhealthy.isMember); i >= 0 && leader != 0 {
				w.led = list[i].ID == leader
			}
		}
	}()
	return w
}

func (w *watch) stop() (seen []string, led bool) {
	w.cancel()
	<-w.stopped
	return w.seen, w.led
}

func (h *host) isMember(m *etcdserverpb.Member) bool { return m.PeerURLs[0] == h.Options.PeerURL }

// memberNames returns the names of the members, in the order of the hosts.
func (w *world) memberNames(list []*etcdserverpb.Member) string {
	var names []string
	for _, h := range w.hosts {
		for _, m := range list {
			switch {
			case !h.isMember(m):
			case m.IsLearner:
				names = append(names, "("+h.Options.Name+")")
			default:
				names = append(names, h.Options.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

func TestTheStandbyReplacesAFollowerWithASlowDiskWhichReturnsAsTheStandby(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorld(t, 1)
	s.lead(s.hosts[0])
	s.makeUnhealthy()
	s.expectReplaced("n1 n2 n3 (n4)", "n1 n2 n3 n4", "n1 n2 n4")
	s.never(quiet, "n3 comes back while its disk is slow", func() bool { return !s.has(3, 0) })
	clearRules(t, s.disk)
	s.within(rejoinBound, "n3 is back as the standby", func() bool { return s.has(3, 1) })
	s.waitRolesAgree()
	s.checkClients()
	s.verify(3, 1)
}

func TestASpareReplacesAFollowerWithASlowDisk(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorld(t, 0)
	s.lead(s.hosts[0])
	s.makeUnhealthy()
	s.expectReplaced("n1 n2 n3", "n1 n2 n3 (n4)", "n1 n2 n3 n4", "n1 n2 n4")
	clearRules(t, s.disk)
	s.checkClients()
	s.verify(3, 0)
}

// TestALeaderWithASlowDiskTransfersLeadershipBeforeItIsReplaced has a slow leader: no host replaces it before it has
// transferred leadership.
func TestALeaderWithASlowDiskTransfersLeadershipBeforeItIsReplaced(t *testing.T) {
	t.Parallel()
	s := newUnhealthyWorld(t, 1)
	n3 := s.hosts[2]
	s.lead(n3)
	s.makeUnhealthy()
	s.expectReplaced("n1 n2 n3 (n4)", "n1 n2 n3 n4", "n1 n2 n4")
	s.checkStepOrder(policy.StepLeaderStepsDown, policy.StepBeginReplace, policy.StepPromote, policy.StepRemoveMember)
	clearRules(t, s.disk)
	s.checkClients()
}
