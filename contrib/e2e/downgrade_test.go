// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMatrixDowngrade downgrades a cluster under load from the newest minor version to the oldest to which etcd can
// downgrade, one minor version at a time.
func TestMatrixDowngrade(t *testing.T) {
	t.Parallel()
	chain := []string{"v3.7", "v3.6", "v3.5"}
	for _, v := range chain {
		if !slices.Contains(versions(), v) {
			t.Skipf("needs etcd %s in QUORUMD_ETCD_VERSIONS, which make test-matrix sets", v)
		}
	}
	w := upgradeWorld(t, 4, chain[0], chain[1:]...)
	n1 := w.hosts[0]
	load := w.load()
	all := func(version string) {
		t.Helper()
		minor := strings.TrimPrefix(version, "v")
		w.eventually("all members run "+minor, func() bool { return w.minors() == minor+" "+minor+" "+minor })
	}
	all(chain[0])

	me().ctl(n1, "upgrade", "downgrade", testbed.EtcdVersion(t, "v3.5"), "--command", installs("v3.5"),
		"--reason", "a test", "--yes").check(t, "two minor versions at once", exitConflict,
		"one minor version at a time", "downgrade to 3.6 first")
	w.abortDowngrade(t, "v3.6")
	all(chain[0])
	for _, next := range chain[1:] {
		to := testbed.EtcdVersion(t, next)
		w.eventually("the plan names the job and the host's step", func() bool {
			plan := unwrapped(me().ctl(n1, "upgrade", "downgrade", to, "--command", installs(next), "--reason",
				"a test", "--dry-run").output)
			return strings.Contains(plan, "downgrade job to "+strings.TrimPrefix(next, "v")) &&
				strings.Contains(plan, "etcd starts as "+to) && strings.Contains(plan, "hosts can join again")
		})
		w.startDowngrade(t, next, installs(next))
		w.rollout(record.RolloutDone)
		all(next)
		w.eventually("etcd has ended its job", func() bool { return w.downgradeTarget() == "" })
	}
	report := load.Stop()
	t.Logf("3.7 to 3.6 to 3.5: %d writes, %d failed, %d retried, longest gap %d ms", report.Acked, report.Failed,
		report.Retried, report.LongestGap.Milliseconds())
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	w.verify(3, 0)
}

// startDowngrade starts a downgrade to a minor version as soon as n1 has observed the end of the last operation.
func (w *world) startDowngrade(t *testing.T, next, command string) {
	t.Helper()
	w.eventually("the downgrade starts", func() bool {
		got := me().ctl(w.hosts[0], "upgrade", "downgrade", testbed.EtcdVersion(t, next), "--command", command,
			"--reason", "a test", "--yes")
		return got.code == 0 && strings.Contains(got.output, "running")
	})
}

// abortDowngrade starts a downgrade whose command fails on the first host, checks that no host joins meanwhile, and
// aborts the downgrade.
func (w *world) abortDowngrade(t *testing.T, next string) {
	t.Helper()
	n1 := w.hosts[0]
	for _, h := range w.hosts {
		h.command("fails", "exit 1")
	}
	w.startDowngrade(t, next, "fails")
	w.rollout(record.RolloutStopped)
	if got := w.downgradeTarget(); !strings.HasPrefix(got, strings.TrimPrefix(next, "v")) {
		t.Errorf("the downgrade has stopped, and etcd's job has the target %q", got)
	}
	spare := w.hosts[3]
	spare.set("cluster.standbys", "1")
	w.start(spare)
	w.eventually("the spare reports why it does not join", func() bool {
		return spare.hasReason(policy.DowngradeEnabled)
	})
	spare.stop()
	me().ctl(n1, "upgrade", "abort", "--command", "fails", "--reason", "back").check(t, "no way back by a command",
		exitConflict, "the last rollout is a downgrade")
	me().ctl(n1, "upgrade", "abort").check(t, "it is aborted", 0, "aborted")
	w.eventually("a host has cancelled etcd's job", func() bool { return w.downgradeTarget() == "" })
}

// downgradeTarget returns the target of etcd's downgrade job according to the first member: empty if there is none,
// "unknown: ..." if the member does not answer.
func (w *world) downgradeTarget() string {
	w.t.Helper()
	etcd := w.hosts[0].etcd
	status, err := etcd.Status(w.t.Context(), etcd.Endpoints()[0])
	if err != nil {
		return "unknown: " + err.Error()
	}
	if !status.DowngradeInfo.GetEnabled() {
		return ""
	}
	return status.DowngradeInfo.GetTargetVersion()
}
