// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// statusNow returns the host's status. It fails the test if the agent does not answer the first request.
func (h *host) statusNow() control.Status {
	h.w.t.Helper()
	s, ok := h.status()
	if !ok {
		h.w.t.Fatalf("the agent of %s does not answer", h.Options.Name)
	}
	return s
}

func TestACommandShowsWhatThePreviousOneChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 1, voters: 1, set: quickTimes(), each: func(_ int, o *testbed.HostOptions) {
		// the intervals are long, so that no regular round shows a change in time by chance
		o.Set["timing.interval"], o.Set["timing.renewEvery"], o.Set["timing.hostRecordTTL"] = "1s", "1s", "4s"
	}})
	w.start()
	w.bootstrap()
	n1 := w.hosts[0]
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	try := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		try(n1.Client.Pause(ctx, control.PauseRequest{Reason: "a look", For: control.Duration(time.Hour)}))
		if s := n1.statusNow(); s.Pause == nil {
			t.Error("the status does not show the pause")
		}
		try(n1.Client.Resume(ctx))
		if s := n1.statusNow(); s.Pause != nil {
			t.Error("the status shows a pause that has ended")
		}
		r, err := n1.Client.StartRollout(ctx, control.RolloutRequest{Work: policy.WorkRestart, Reason: "a test"})
		try(r, err)
		if s := n1.statusNow(); s.Rollout == nil || s.Rollout.ID != r.ID || s.Rollout.State != record.RolloutRunning {
			t.Errorf("the rollout %s was started, and the status shows %+v", r.ID, s.Rollout)
		}
		try(n1.Client.SetRollout(ctx, record.RolloutAborted))
		if s := n1.statusNow(); s.Rollout.State != record.RolloutAborted {
			t.Errorf("the rollout was aborted, and is %s", s.Rollout.State)
		}
		try(n1.Client.EndMaintenance(ctx))
		if s := n1.statusNow(); s.Maintenance != nil {
			t.Errorf("a cancelled request is shown: %+v", s.Maintenance)
		}
	}
}

// newVoters makes a world of three voters with short waits.
func newVoters(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: quickTimes(), each: func(i int, o *testbed.HostOptions) {
		if i > 2 { // before it adds a third member, etcd requires that two voters have been connected for 5 s
			o.Set["timing.settle"] = "5500ms"
		}
	}})
	w.start()
	w.bootstrap()
	w.eventually("there are three voters", func() bool { return w.has(3, 0) })
	w.eventually("all are idle", func() bool {
		return !slices.ContainsFunc(w.hosts, func(h *host) bool { return !h.waitsFor(policy.Idle) })
	})
	return w
}

// breakForGood ends the host's etcd permanently: every process started in its place exits at once.
func (h *host) breakForGood() {
	h.breakEtcd(`echo "no disk" >&2; exit 1`)
	h.killEtcd()
}

func TestAClusterWithoutSomeMembersReportsThemAndTheCommand(t *testing.T) {
	t.Parallel()
	w := newVoters(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	me().ctl(n2, "rollout", "start", "restart", "--yes", "--reason", "a test", "--wait=2m").check(t, "a rollout", 0,
		"rollout restart: done, 3 of 3 hosts")
	me().ctl(n2, "rollout", "status").check(t, "and after it", 0, "rollout restart: done, 3 of 3 hosts")
	n3.breakForGood()
	for _, h := range []*host{n1, n2} {
		w.eventually(h.Options.Name+" reports that n3 is down", func() bool {
			return h.reasonIs(policy.VoterNotLive, "voter n3 has not answered for ")
		})
		me().ctl(h, "explain").check(t, "explain", 0, "quorumctl member remove n3 --reason '<why>'")
		for _, r := range h.statusNow().Hosts {
			if r.Waiting != "" {
				t.Errorf("%s sees %s wait for %s", h.Options.Name, r.Name, r.Waiting)
			}
		}
	}

	n3.stop() // below, the host is reinstalled
	w.noteData()
	for _, dir := range []string{filepath.Join(n3.DataDir(), "member"), filepath.Join(n3.Options.Dir, "state")} {
		if err := os.Rename(dir, dir+".quorumd-lost"); err != nil {
			t.Fatal(err)
		}
	}
	w.start(n3)
	w.eventually("n3 reports that its member is lost", func() bool {
		return n3.reasonIs(policy.MemberLost, "this host is listed as voter n3 (") &&
			n3.reasonIs(policy.MemberLost, "its data directory is empty")
	})
	me().ctl(n3, "explain").check(t, "explain", 0, "on another host: quorumctl member remove n3 --reason '<why>'")

	n2.breakForGood()
	w.eventually("n1 reports which members answer", func() bool {
		return n1.reasonIs(policy.NoQuorum, "n1 answers; n2 (connection refused) and n3 (")
	})
	s := n1.statusNow()
	for _, m := range s.Cluster.Members {
		if m.Live != (m.Name == "n1") {
			t.Errorf("%s is shown with live=%t", m.Name, m.Live)
		}
	}
	me().ctl(n1, "status").check(t, "status", 0, "1 of 3 voters up", "no quorum", "n2", "voter, down")
	w.eventually("n3 reports the cluster", func() bool { return n3.hasReason(policy.NoQuorum) })
	for end := time.Now().Add(quiet); time.Now().Before(end); {
		for _, h := range []*host{n1, n3} {
			for _, command := range []string{"status", "explain"} {
				output := me().ctl(h, command).output
				for _, wrong := range []string{
					"bootstrap", "rpc error", "desc =", "etcdserver:", "context deadline",
					"is stuck",
				} {
					if strings.Contains(output, wrong) {
						t.Fatalf("%s of %s prints %q: %s", command, h.Options.Name, wrong, output)
					}
				}
			}
		}
	}
	me().ctl(n1, "pause", "--reason", "x").check(t, "pause", exitUnavailable, "cannot pause: ")
	if output := me().ctl(n1, "history").output; strings.Contains(output, "rpc error") ||
		strings.Contains(output, "etcdserver") {
		t.Errorf("history: %s", output)
	}
}
