// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// upgradeWorld makes a world of three voters with this version of etcd; any further hosts do not run yet. Each version
// has a command that installs it: "etcd-v37" replaces the binary with that of 3.7.
func upgradeWorld(t *testing.T, hosts int, version string, others ...string) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: hosts, voters: 3, each: func(_ int, o *testbed.HostOptions) {
		o.Etcd = filepath.Join(t.TempDir(), "etcd")
		must(t, os.Symlink(testbed.Etcd(t, version), o.Etcd))
		o.Set["maintenance.hooks"], o.Set["maintenance.hookTimeout"] = filepath.Join(o.Dir, "hooks"), "20s"
	}})
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	for _, h := range w.hosts {
		for _, v := range append(others, version) {
			h.command(installs(v), "ln -sf "+testbed.Etcd(t, v)+" "+h.Options.Etcd+".new && mv "+h.Options.Etcd+".new "+
				h.Options.Etcd)
		}
	}
	return w
}

// installs returns the name of the command that installs a minor version, such as "etcd-v37".
func installs(version string) string { return "etcd-" + strings.ReplaceAll(version, ".", "") }

// minors returns the minor version of each member in the order of the hosts, as each host reports its own.
func (w *world) minors() string {
	var all []string
	for _, h := range w.hosts[:3] {
		s, ok := h.status()
		if !ok {
			return ""
		}
		for _, m := range s.Cluster.Members {
			if m.Name == h.Options.Name {
				all = append(all, strings.Join(strings.SplitN(m.Version+"..", ".", 3)[:2], "."))
			}
		}
	}
	return strings.Join(all, " ")
}

// TestMatrixUpgrade upgrades clusters under load from each minor version to the next.
func TestMatrixUpgrade(t *testing.T) {
	t.Parallel()
	for _, p := range []pair{{cluster: "v3.5", host: "v3.6"}, {cluster: "v3.6", host: "v3.7"}} {
		if !slices.Contains(versions(), p.cluster) || !slices.Contains(versions(), p.host) {
			continue
		}
		t.Run(p.cluster+" to "+p.host, func(t *testing.T) {
			t.Parallel()
			upgradeBackAndForth(t, p.cluster, p.host)
		})
	}
}

// upgradeBackAndForth upgrades a cluster up to the pause before its last member, rolls it back, and upgrades it again
// to the end.
func upgradeBackAndForth(t *testing.T, old, next string) {
	w := upgradeWorld(t, 3, old, next)
	n1 := w.hosts[0]
	from, to := testbed.EtcdVersion(t, old), testbed.EtcdVersion(t, next)
	older, newer := strings.TrimPrefix(old, "v"), strings.TrimPrefix(next, "v")
	load := w.load()

	me().ctl(n1, "upgrade", "plan", to, "--command", installs(next)).check(t, "the plan", 0,
		"the rollout pauses; up to this point every host can be rolled back to etcd "+older,
		"the cluster version becomes "+newer)
	if next == "v3.7" {
		me().ctl(n1, "upgrade", "plan", to, "--command", installs(next)).check(t, "the plan warns", 0,
			"if this cluster ran etcd 3.5 before")
	}
	me().ctl(n1, "upgrade", "start", "3.99.0", "--command", installs(next), "--reason", "a test", "--yes").
		check(t, "an untested version", exitConflict, "tested with etcd up to")
	refuseUnprepared(t, w, to, next)
	start := func() {
		t.Helper()
		w.eventually("the upgrade starts", func() bool { // when n1 has observed the end of the last operation
			got := me().ctl(n1, "upgrade", "start", to, "--command", installs(next), "--reason", "a test", "--yes")
			return got.code == 0 && strings.Contains(got.output, "running")
		})
		got := w.rollout(record.RolloutPaused)
		if !strings.Contains(got.Text, "the last member with etcd "+older) {
			t.Errorf("the rollout is paused: %s", got.Text)
		}
		if minors := w.minors(); strings.Count(minors, older) != 1 || strings.Count(minors, newer) != 2 {
			t.Errorf("at the pause the members run %s", minors)
		}
	}
	start()
	w.keepLastMember(t, older)
	me().ctl(n1, "upgrade", "abort", "--command", installs(old), "--reason", "back", "--dry-run").check(t,
		"the steps of the way back", 0, "would abort the rollout to "+to, "etcd starts as "+from, "nothing has changed")
	me().ctl(n1, "upgrade", "abort", "--command", installs(old), "--reason", "back").check(t, "the way back", 0, from)
	w.rollout(record.RolloutDone)
	all := func(minor string) {
		t.Helper()
		w.eventually("all members run "+minor, func() bool { return w.minors() == minor+" "+minor+" "+minor })
	}
	all(older)

	start()
	me().ctl(n1, "upgrade", "resume").check(t, "it is resumed", 0, "running")
	w.rollout(record.RolloutDone)
	all(newer)
	w.eventually("no rollback is possible", func() bool { // when n1 has observed the end of the last operation
		got := me().ctl(n1, "upgrade", "start", from, "--command", installs(old), "--reason", "back", "--dry-run")
		return got.code == exitConflict && strings.Contains(unwrapped(got.output), "no member runs etcd "+older)
	})

	report := load.Stop()
	t.Logf("%s to %s: %d writes, %d failed, %d retried, longest gap %d ms", from, to, report.Acked, report.Failed,
		report.Retried, report.LongestGap.Milliseconds())
	if report.Failed > 0 {
		t.Errorf("%d writes failed", report.Failed)
	}
	w.verify(3, 0)
}

// runs returns a program that runs another one, at a path where only the user of this test can write. The checkout may
// belong to a different user.
func runs(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(tempdir.New(t), "etcd")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nexec '"+program+"' \"$@\"\n"), 0o755))
	must(t, os.Chmod(path, 0o755))
	return path
}

// keepLastMember checks that an operator cannot remove the last member with the older version while the upgrade is
// paused, and that the agent of its host starts etcd again after a crash.
func (w *world) keepLastMember(t *testing.T, older string) {
	t.Helper()
	last := w.hosts[slices.Index(strings.Fields(w.minors()), older)]
	other := w.hosts[0]
	if other == last {
		other = w.hosts[1]
	}
	me().ctl(other, "member", "remove", last.Options.Name, "--yes", "--live", "--reason", "a test").
		check(t, "the removal of the last member", exitConflict, "stays until the upgrade is resumed or aborted")
	before, err := last.EtcdPID(t.Context())
	must(t, err)
	if was, err := last.KillEtcd(t.Context()); !was || err != nil {
		t.Errorf("the etcd of the last host was killed: %t, %v", was, err)
	}
	w.eventually("the etcd of the last host runs again", func() bool {
		pid, err := last.EtcdPID(t.Context())
		return err == nil && pid != 0 && pid != before
	})
	w.waitTwoRounds()
	w.eventually("all members answer", func() bool { return strings.Count(w.minors(), older) == 1 && w.allLive() })
}

// allLive reports whether every member answers, as n1 observes.
func (w *world) allLive() bool {
	s, ok := w.hosts[0].status()
	return ok && !slices.ContainsFunc(s.Cluster.Members, func(m control.Member) bool { return !m.Live })
}

// refuseUnprepared checks that no upgrade starts while a host's etcd.nextBinary has the wrong version, is writable for
// all users, or ignores a configured variable. It leaves n2 prepared; the other hosts have no etcd.nextBinary.
func refuseUnprepared(t *testing.T, w *world, to, next string) {
	t.Helper()
	n1, n2 := w.hosts[0], w.hosts[1]
	restart := func(h *host) {
		h.stop()
		w.start(h)
	}
	refused := func(why string) {
		t.Helper()
		var last commandResult
		testbed.Eventually(t, bound, "the upgrade is refused: "+why, func() bool {
			last = me().ctl(n1, "upgrade", "start", to, "--command", installs(next), "--reason", "a test", "--dry-run")
			return strings.Contains(unwrapped(last.output), why)
		})
		last.check(t, "it is refused", exitConflict, why)
	}
	n2.set("etcd.nextBinary", runs(t, n2.Options.Etcd))
	restart(n2)
	refused("etcd.nextBinary on n2 is etcd ")
	binary := runs(t, testbed.Etcd(t, next))
	must(t, os.Chmod(binary, 0o757))
	n2.set("etcd.nextBinary", binary)
	restart(n2)
	refused("because every user on this host can write " + binary)
	must(t, os.Chmod(binary, 0o755))
	n2.set("etcd.environment", `{ETCD_PROXY: "off"}`)
	restart(n2)
	refused("etcd.nextBinary on n2 ignores ETCD_PROXY (remove it)")
	n2.set("etcd.environment", "{}")
	restart(n2)
	w.waitRolesAgree()
	w.eventually("n2 is prepared", func() bool {
		got := me().ctl(n1, "upgrade", "plan", to, "--command", installs(next))
		return got.code == 0 && strings.Contains(unwrapped(got.output), "n1, n3: not checked")
	})
}

// unwrapped returns an output without line breaks.
func unwrapped(output string) string { return strings.Join(strings.Fields(output), " ") }
