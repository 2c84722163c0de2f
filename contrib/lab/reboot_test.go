//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestAPlainRebootTransfersLeadershipFirst types "reboot" on the leader while a client writes, then on a follower, and
// then on all hosts within one second. quorumd gets no request: it observes the reboot through logind, whose shutdown
// it delays.
func TestAPlainRebootTransfersLeadershipFirst(t *testing.T) {
	f := formedFleetRunning(t)
	f.killed = true
	members := f.roles()
	for _, role := range []string{"leader", "follower"} {
		h := f.leader()
		if role == "follower" {
			h = f.follower(nil)
			f.setCooldown(h)
		}
		f.waitHealthy()
		report := f.underWrites(func([]*lab.Host) { f.check(h.Reboot(t.Context())) })
		t.Logf("%s, the %s, rebooted: %d writes acknowledged, %d failed, longest gap %v", h.Name, role, report.Acked,
			report.Failed, report.LongestGap)
		if report.Failed > 0 {
			t.Errorf("%d writes failed", report.Failed)
		}
		if report.LongestGap > 3*time.Second { // an election takes less
			t.Errorf("no write was acknowledged for %v", report.LongestGap)
		}
		f.checkPermittedReboot(h, role == "leader")
		f.waitIdle()
	}

	f.waitHealthy()
	boots, voters := f.boots(), f.role(policy.RoleVoter)
	for _, h := range voters {
		f.logIn(h)
	}
	f.check(f.Each(func(h *lab.Host) error { return h.Reboot(t.Context()) }))
	f.verify(3, 1)
	f.checkSimultaneousReboot(voters)
	f.waitIdle()
	for name, boot := range f.boots() {
		if boot == boots[name] {
			t.Errorf("%s has not rebooted", name)
		}
	}
	if now := f.roles(); len(now) != len(members) {
		t.Errorf("the members were %v, and are %v", members, now)
	}
}

// setCooldown sets a host's cooldown to the default minute instead of the lab's second, and restarts its agent. The
// agent then does not know when the last operation ended, so it waits for a whole cooldown before the next one.
func (f *fleet) setCooldown(h *lab.Host) {
	f.t.Helper()
	const settings = "/etc/quorumd/quorumd.yaml"
	f.shell(h, "grep -q 'cooldown: 1s' "+settings+" && sed -i 's/cooldown: 1s/cooldown: 60s/' "+settings+
		" && systemctl restart quorumd")
	f.eventually(h.Name+" is idle", func() bool { return f.hasReason(h, "IDLE") })
}

// waitHealthy waits until every member's host has been found healthy since it booted. Before that, no host may go down.
func (f *fleet) waitHealthy() {
	f.t.Helper()
	f.eventually("all are healthy", func() bool {
		for _, h := range f.Hosts {
			if s, ok := f.status(h); !ok || s.Health.State != "OK" && s.Role != policy.RoleSpare {
				return false
			}
		}
		return true
	})
}

// Lines in the journal of a host that goes down.
var (
	rebootBegins    = [2]string{"systemd-logind", "The system will reboot now!"}
	shutdownNoticed = [2]string{"quorumd", "machine is shutting down max_delay=10s"}
	moved           = [2]string{"etcd", "leadership transfer finished"}
	signalled       = [2]string{"etcd", "received signal; shutting down"}
	etcdEnds        = [2]string{"etcd", "closed etcd server"}
	etcdEnded       = [2]string{"systemd", "etcd.service: Deactivated successfully."}
	rebooting       = [2]string{"systemd-logind", "System is rebooting."}
	shutdownAllowed = [2]string{"quorumd", "shutdown allowed: etcd stopped cleanly"}
	finalShutdown   = [2]string{"systemd", "Shutting down."}
)

// checkPermittedReboot checks, in the journal of a rebooted host, that quorumd noticed the reboot, transferred
// leadership if the host led, and stopped etcd cleanly before the machine went down.
func (f *fleet) checkPermittedReboot(h *lab.Host, led bool) {
	f.t.Helper()
	log := f.lastBoot(h)
	f.t.Logf("the journal of %s:\n%s", h.Name, log.tail(log.mustFind(rebootBegins[0], rebootBegins[1]).at))
	if led {
		log.checkOrder(shutdownNoticed, moved, signalled)
	}
	log.checkOrder(rebootBegins, shutdownNoticed, signalled, etcdEnds, etcdEnded, shutdownAllowed, finalShutdown)
}

// checkSimultaneousReboot checks the journals of all hosts, which rebooted within the same second. At least one host
// must have been allowed to reboot, and the others must have waited for that as long as logind permits. Those whose
// vote was lost must have warned all logged-in users.
func (f *fleet) checkSimultaneousReboot(voters []*lab.Host) {
	f.t.Helper()
	var begun []time.Time
	var allowed []string
	for _, h := range f.Hosts {
		log := f.lastBoot(h)
		begins := log.mustFind(rebootBegins[0], rebootBegins[1]).at
		begun = append(begun, begins)
		f.t.Logf("the journal of %s:\n%s", h.Name, log.tail(begins))
		log.checkOrder(rebootBegins, shutdownNoticed, rebooting, finalShutdown)
		if !f.is(h, policy.RoleSpare) {
			log.checkOrder(shutdownNoticed, signalled, etcdEnds, etcdEnded, finalShutdown)
		}
		if _, had := log.find(shutdownAllowed[0], shutdownAllowed[1]); had {
			allowed = append(allowed, h.Name)
			log.checkOrder(shutdownAllowed, rebooting)
			continue
		}
		// quorumd stops waiting half a second before logind's limit, and the test tolerates a further half second
		if waited := log.mustFind(rebooting[0], rebooting[1]).at.Sub(begins); waited < lab.ShutdownDelay-time.Second {
			f.t.Errorf("%s went down after %v without permission", h.Name, waited)
		}
		if !slices.Contains(voters, h) {
			log.mustFind("quorumd", "shutting down without permission; no vote is lost")
			continue
		}
		if _, stops := log.find("quorumd", "shutting down while etcd is still stopping"); stops {
			continue // the previous host was back so soon that the operation of this one had begun
		}
		if e := log.mustFind("quorumd", shutdownWarning); e.priority != "0" {
			f.t.Errorf("the journal of %s has %q with priority %q", h.Name, e.text, e.priority)
		}
		if screen := f.shell(h, "cat "+screenPath); !strings.Contains(screen, shutdownWarning) {
			f.t.Errorf("the user logged in on %s saw\n%s", h.Name, screen)
		}
	}
	if len(allowed) == 0 { // more than one, if a spare is back so soon that another host may go down, too
		f.t.Error("no host was allowed to reboot")
	}
	f.t.Logf("%v were allowed to reboot", allowed)
	if span := slices.MaxFunc(begun, time.Time.Compare).Sub(slices.MinFunc(begun,
		time.Time.Compare)); span > lab.ShutdownDelay/2 {
		f.t.Errorf("the reboots of the hosts began within %v", span)
	}
}

// shutdownWarning begins quorumd's warning when the machine shuts down although the cluster cannot spare it.
const shutdownWarning = "THIS MACHINE IS GOING DOWN AND "

// screenPath is the recorded terminal of the user that logIn logs in.
const screenPath = "/root/screen"

// logIn logs a user in at a terminal of a host.
func (f *fleet) logIn(h *lab.Host) {
	f.t.Helper()
	f.shell(h, "systemd-run --quiet --unit=person sh -c 'sleep 600 | script --quiet --flush --command \"login -f "+
		"root\" "+screenPath+"'")
	f.eventually("a user is logged in on "+h.Name, func() bool { return f.shell(h, "who") != "" })
}

// underWrites calls do with the voters while a client writes, and waits until all voters are back. It returns the
// result of the writes.
func (f *fleet) underWrites(do func(voters []*lab.Host)) testbed.LoadReport {
	f.t.Helper()
	voters := f.role(policy.RoleVoter)
	var endpoints []string
	for _, h := range voters {
		endpoints = append(endpoints, h.ClientURL())
	}
	load, err := testbed.StartWriteLoad(f.t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, Rate: 50, Retry: true, Prefix: fmt.Sprintf("load/%d/", time.Now().UnixNano()),
	})
	f.check(err)
	defer load.Stop()
	do(voters)
	f.eventually("all voters are back", func() bool { return f.allServe(voters) })
	return load.Stop()
}

func (f *fleet) allServe(hosts []*lab.Host) bool {
	serve := make([]bool, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { serve[i] = f.serves(h) })
	}
	all.Wait()
	return !slices.Contains(serve, false)
}

// waitIdle waits until no operation is in flight and every agent is idle.
func (f *fleet) waitIdle() {
	f.t.Helper()
	f.eventually("all are idle", func() bool {
		for _, h := range f.Hosts {
			if !f.hasReason(h, "IDLE") && !f.hasReason(h, "TARGET_MET") {
				return false
			}
		}
		return f.isIdle()
	})
}

// boots returns the boot ID of every host.
func (f *fleet) boots() map[string]string {
	f.t.Helper()
	boots := map[string]string{}
	for _, h := range f.Hosts {
		boot, err := h.BootID(f.t.Context())
		f.check(err)
		boots[h.Name] = boot
	}
	return boots
}
