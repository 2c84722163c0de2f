//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/lab"
)

// newSubnet is the network to which the peer URLs move. The hosts keep their first addresses, at which clients connect.
const newSubnet = "10.78.0."

// TestPeerURLsMoveToAnotherSubnetAndToHTTPSWithoutAFailedWrite has three voters and a standby.
func TestPeerURLsMoveToAnotherSubnetAndToHTTPSWithoutAFailedWrite(t *testing.T) {
	movePeerURLs(formedFleetRunning(t), 3, 1)
}

func TestPeerURLsOfFiveVotersMoveToAnotherSubnetAndToHTTPSWithoutAFailedWrite(t *testing.T) {
	f := formedFleetRunning(t)
	f.shell(f.Hosts[0], "quorumctl cluster resize 5 --reason test --yes")
	f.within(2*bound, "all five hosts vote", func() bool { return f.has(5, 0) && f.isIdle() })
	movePeerURLs(f, 5, 0)
}

// movePeerURLs changes the peer URLs of all members under writes that clients retry for 5 s: first to addresses in
// another subnet, then from http to https, with certificates from quorumctl pki, and back.
func movePeerURLs(f *fleet, voters, standbys int) {
	t := f.t
	f.waitHealthy()
	load := f.retryingWrites()
	settings := map[*lab.Host]lab.Settings{}
	for i, h := range f.Hosts {
		address := fmt.Sprintf("%s%d", newSubnet, i+1)
		f.check(h.AddAddress(t.Context(), address+"/24"))
		settings[h] = h.Settings()
		settings[h]["etcd"]["peerURL"] = "http://" + address + ":2380"
	}
	f.reconfigure(settings)
	f.readdress("new subnet", len(f.mustMembers()))
	f.checkPeerURLs("http://" + newSubnet)

	f.installCertificates(settings)
	f.reconfigure(settings)
	var members []string
	for _, m := range f.mustMembers() {
		members = append(members, m.Name)
	}
	f.readdress("certificates", len(members), members...)
	f.changeScheme(settings, "http:", "https:")
	f.readdress("https", len(members))
	f.checkPeerURLs("https://" + newSubnet)
	f.changeScheme(settings, "https:", "http:")
	f.readdress("http again", len(members))
	f.checkPeerURLs("http://" + newSubnet)
	f.checkWritten(load.Stop)
	t.Log(f.shell(f.Hosts[0], "quorumctl history --since 30m"))
	f.verify(voters, standbys)
}

// reconfigure writes the configuration of every host, and reloads its quorumd.
func (f *fleet) reconfigure(settings map[*lab.Host]lab.Settings) {
	f.t.Helper()
	f.check(f.Each(func(h *lab.Host) error {
		if err := h.Configure("manage", settings[h]); err != nil {
			return err
		}
		_, err := h.Shell(f.t.Context(), "quorumctl config check && systemctl reload quorumd")
		return err
	}))
}

// changeScheme replaces the scheme of every host's peer URL.
func (f *fleet) changeScheme(settings map[*lab.Host]lab.Settings, from, to string) {
	f.t.Helper()
	for _, s := range settings {
		s["etcd"]["peerURL"] = strings.Replace(s["etcd"]["peerURL"].(string), from, to, 1)
	}
	f.reconfigure(settings)
}

// readdress waits until a readdress would include that many hosts, runs it, and checks that its plan is what happens.
func (f *fleet) readdress(why string, want int, hosts ...string) {
	f.t.Helper()
	f.waitHealthy()
	ask := func(dryRun bool) (control.Rollout, error) {
		ctx, cancel := context.WithTimeout(f.t.Context(), bound)
		defer cancel()
		return control.Dial(f.Hosts[0].Path("/run/quorumd/control.sock")).StartRollout(ctx, control.RolloutRequest{
			Work: policy.WorkReaddress, Hosts: hosts, Reason: why, DryRun: dryRun,
		})
	}
	var plan control.Rollout
	var last error
	f.t.Cleanup(func() {
		if f.t.Failed() {
			f.t.Logf("%s: the last answer was %v", why, last)
		}
	})
	f.eventually(fmt.Sprintf("a readdress would include %d hosts", want), func() bool {
		plan, last = ask(true)
		return last == nil && len(plan.Hosts) == want
	})
	first := len(f.mustHistory())
	f.eventually("the readdress is accepted", func() bool {
		_, last = ask(false)
		return last == nil
	})
	f.within(6*bound, why+": the readdress is done", func() bool {
		s, ok := f.status(f.Hosts[0])
		return ok && s.Rollout != nil && s.Rollout.Reason == why && s.Rollout.State == record.RolloutDone && f.isIdle()
	})
	f.checkPlan(plan.Steps, first)
}

// checkPeerURLs checks that every member has a peer URL that begins like this.
func (f *fleet) checkPeerURLs(prefix string) {
	f.t.Helper()
	for _, m := range f.mustMembers() {
		if !strings.HasPrefix(strings.Join(m.PeerURLs, " "), prefix) {
			f.t.Errorf("%s has the peer URLs %v, want %s…", m.Name, m.PeerURLs, prefix)
		}
	}
}

// installCertificates creates a CA on the first host, installs certificates on all hosts, and adds them to the
// settings. The certificates are valid for both addresses of a host.
func (f *fleet) installCertificates(settings map[*lab.Host]lab.Settings) {
	f.t.Helper()
	ca := f.Hosts[0]
	f.shell(ca, "cd /root && quorumctl pki init")
	for i, h := range f.Hosts {
		f.shell(ca, fmt.Sprintf("cd /root && quorumctl pki host %s %s %s%d", h.Name, h.Address, newSubnet, i+1))
		bundle := "/root/quorumd-pki/" + h.Name + ".tar"
		if h != ca {
			text, err := os.ReadFile(filepath.Join(ca.Root(), bundle))
			f.check(errors.Join(err, h.Write(bundle, string(text), 0o600)))
		}
		f.shell(h, "quorumctl pki install "+bundle)
		in := func(name string) string { return "/etc/quorumd/tls/" + name }
		settings[h]["etcd"]["tls"] = map[string]string{
			"ca": in("ca.crt"), "cert": in("server.crt"), "key": in("server.key"), "peerCA": in("peer-ca.crt"),
			"peerCert": in("peer.crt"), "peerKey": in("peer.key"),
		}
	}
}

// TestOneVoterBecomesNineAndOneAgain resizes a cluster on nine hosts step by step, under writes that clients retry for
// 5 s.
func TestOneVoterBecomesNineAndOneAgain(t *testing.T) {
	const hosts = 9
	f := newFleet(t, lab.Options{Hosts: hosts})
	f.check(f.Each(func(h *lab.Host) error {
		return f.installManagedWith(h, func(s lab.Settings) {
			s["cluster"]["voters"], s["cluster"]["standbys"] = 1, 0
		})
	}))
	f.bootstrap(f.Hosts[0])
	f.within(2*bound, "one voter serves", func() bool { return f.has(1, 0) && f.isIdle() })
	f.waitHealthy()
	load := f.retryingWrites()
	for _, voters := range []int{3, 5, 7, 9, 7, 5, 3, 1} {
		f.eventually("a dry run names every host that joins or leaves", func() bool {
			plan, err := f.askResize(voters, true)
			return err == nil && !slices.ContainsFunc(plan.Steps, func(s policy.PlanStep) bool { return s.Host == "" })
		})
		began, before := time.Now(), len(f.mustHistory())
		plan := f.resize(voters)
		f.within(10*bound, fmt.Sprintf("%d vote", voters), func() bool {
			return f.has(voters, 0) && f.isIdle()
		})
		t.Logf("%6.1f s: %d voters; %v", time.Since(began).Seconds(), voters, load.Report().LongestGap)
		f.checkPlan(plan.Steps, before)
	}
	f.checkWritten(load.Stop)
	f.verify(1, 0)
}
