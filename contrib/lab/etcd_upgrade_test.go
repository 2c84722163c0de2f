//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestThreeVotersAreUpgradedAndDowngradedWithoutAFailedWrite(t *testing.T) { upgradeAndBack(t, 3) }

func TestFiveVotersAreUpgradedAndDowngradedWithoutAFailedWrite(t *testing.T) { upgradeAndBack(t, 5) }

// nextEtcd is the path of etcd.nextBinary on a host.
const nextEtcd = "/opt/next/etcd"

// upgradeAndBack upgrades voters from etcd 3.5 to 3.6 and 3.7, each with the pause before the last member, and
// downgrades them again, under writes that clients retry for 5 s. Before each change, every host's agent must have
// checked the next binary with the settings of the running etcd.
func upgradeAndBack(t *testing.T, voters int) {
	minors := []string{"v3.5", "v3.6", "v3.7"}
	f := newFleet(t, lab.Options{Hosts: voters})
	settings := map[*lab.Host]lab.Settings{}
	for _, h := range f.Hosts {
		settings[h] = h.Settings()
		settings[h]["cluster"]["voters"], settings[h]["cluster"]["standbys"] = voters, 0
		settings[h]["etcd"]["nextBinary"] = nextEtcd
		// etcd 3.7 cannot read log entries of 3.5: its upgrade is refused until etcd 3.6 has saved a snapshot.
		settings[h]["etcd"]["environment"] = map[string]string{"ETCD_SNAPSHOT_COUNT": "500"}
	}
	f.check(f.Each(func(h *lab.Host) error {
		err := h.UseEtcd(testbed.Etcd(t, minors[0]))
		for _, v := range minors {
			err = errors.Join(err, h.Copy(testbed.Etcd(t, v), "/opt/"+v),
				h.Write("/etc/quorumd/hooks/commands.d/"+commandFor(v), fmt.Sprintf(
					"#!/bin/sh\nexec cp --remove-destination /opt/%s /usr/local/bin/etcd\n", v), 0o755))
		}
		if err := errors.Join(err, h.Copy(testbed.Etcd(t, minors[1]), nextEtcd)); err != nil {
			return err
		}
		return f.installManagedWith(h, func(s lab.Settings) {
			for section, keys := range settings[h] {
				s[section] = keys
			}
		})
	}))
	f.bootstrap(f.Hosts[0])
	f.within(2*bound, "all vote", func() bool { return f.has(voters, 0) && f.isIdle() })
	f.waitHealthy()
	load := f.retryingWrites()
	for i, to := range minors[1:] {
		if i > 0 {
			f.prepareNext(to)
		}
		f.changeEtcd("start", to, true)
	}
	for _, to := range []string{"v3.6", "v3.5"} {
		f.prepareNext(to)
		f.changeEtcd("downgrade", to, false)
	}
	f.checkWritten(load.Stop)
	t.Log(f.shell(f.Hosts[0], "quorumctl status"))
	f.verify(voters, 0)
}

// commandFor returns the name of the program that installs a minor version, such as etcd-v36.
func commandFor(minor string) string { return "etcd-" + strings.ReplaceAll(minor, ".", "") }

// prepareNext installs etcd.nextBinary on every host.
func (f *fleet) prepareNext(minor string) {
	f.t.Helper()
	f.check(f.Each(func(h *lab.Host) error {
		if err := h.Copy(testbed.Etcd(f.t, minor), nextEtcd+".new"); err != nil {
			return err
		}
		_, err := h.Shell(f.t.Context(), fmt.Sprintf("mv %[1]s.new %[1]s && systemctl reload quorumd", nextEtcd))
		return err
	}))
}

// changeEtcd runs an upgrade or a downgrade of all hosts to its end, and resumes it if it pauses.
func (f *fleet) changeEtcd(verb, minor string, pauses bool) {
	f.t.Helper()
	h, to := f.Hosts[0], testbed.EtcdVersion(f.t, minor)
	ask := fmt.Sprintf("quorumctl upgrade %s %s --command %s --reason test", verb, to, commandFor(minor))
	shown := ""
	f.within(2*bound, "every host has checked the binary of etcd "+to, func() bool {
		out, err := h.Shell(f.t.Context(), ask+" --dry-run 2>&1")
		if shown = out; err != nil {
			shown = err.Error()
		}
		return err == nil && !strings.Contains(out, "not checked")
	})
	f.t.Logf("%s\n%s", ask, shown)
	began := time.Now()
	f.eventually("it starts", func() bool {
		_, err := h.Shell(f.t.Context(), ask+" --yes")
		return err == nil
	})
	is := func(state string) bool {
		s, ok := f.status(h)
		return ok && s.Rollout != nil && s.Rollout.Version == to && s.Rollout.State == state
	}
	if pauses {
		f.within(5*bound, "it pauses before the last member", func() bool { return is(record.RolloutPaused) })
		f.shell(h, "quorumctl upgrade resume")
	}
	f.within(5*bound, "upgrade "+verb+" "+to+" is done", func() bool { return is(record.RolloutDone) && f.isIdle() })
	f.t.Logf("%6.1f s: upgrade %s %s", time.Since(began).Seconds(), verb, to)
	f.eventually("every member runs it, and no downgrade job is left", func() bool {
		s, ok := f.status(h)
		for _, m := range s.Cluster.Members {
			ok = ok && m.Version == to
		}
		return ok && len(s.Cluster.Members) > 0 && !f.hasReason(h, string(policy.DowngradeEnabled))
	})
	f.waitHealthy()
}
