//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// documentedCommands returns the commands that a page of contrib/docs shows after this prompt, with the addresses of
// the lab. It leaves out the commands after "Day-2 tasks", which are for a running cluster.
func documentedCommands(t *testing.T, page, prompt string) []string {
	t.Helper()
	first, _, _ := strings.Cut(pageOf(t, page), "\n## Day-2 tasks\n")
	return commandsAfter(first, prompt)
}

// documentedUnder returns the commands under one heading.
func documentedUnder(t *testing.T, page, heading, prompt string) []string {
	t.Helper()
	_, rest, found := strings.Cut(pageOf(t, page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ := strings.Cut(rest, "\n#")
	commands := commandsAfter(text, prompt)
	if len(commands) == 0 {
		t.Fatalf("%s has no commands under %q after %q", page, heading, prompt)
	}
	return commands
}

func pageOf(t *testing.T, page string) string {
	t.Helper()
	checkout, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(checkout, "contrib/docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func commandsAfter(text, prompt string) (commands []string) {
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), prompt+" "); ok {
			commands = append(commands, strings.ReplaceAll(command, "10.0.0.", "10.77.0."))
		}
	}
	return commands
}

// TestTheFirstClusterPageMakesATLSClusterOfThreeBareHosts types the commands of contrib/docs/first-cluster.md. The
// differences are the addresses, short waits, loose limits for the disk, and allowSharedHardware, because all hosts
// share the machine.
func TestTheFirstClusterPageMakesATLSClusterOfThreeBareHosts(t *testing.T) {
	f := newBareFleet(t, 3)
	f.bootstrapAndCheck()
	t.Logf("quorumctl status on n1:\n%s", f.shell(f.Hosts[0], "quorumctl status"))
	f.cutAllPower()
}

// otherReleaseTests are the tests whose hosts have a different Debian release.
func otherReleaseTests() map[lab.Release]string {
	return map[lab.Release]string{
		lab.Debian13: "TestDebian13AuthenticatesUsersByCertificate",
		lab.Debian11: "TestDebian11AuthenticatesQuorumdByPassword",
	}
}

func TestDebian13AuthenticatesUsersByCertificate(t *testing.T) {
	f := newBareFleetOf(t, lab.Debian13, 3)
	f.extraOnFirst = documentedUnder(t, firstClusterPage, "### Certificate authentication", "n1#")
	f.bootstrapAndCheck()
	f.checkAuthentication()
	f.cutAllPower()
	f.checkAuthentication()
}

// TestDebian11AuthenticatesQuorumdByPassword uses Debian 11, whose polkit is too old for the package's rules; nothing
// in this test needs them. quorumd's certificates name no etcd user, so that only the password counts; the end of the
// test checks this. The test also measures how long the bootstrap of the page takes with quorumd's default times.
func TestDebian11AuthenticatesQuorumdByPassword(t *testing.T) {
	const heading = "### Password authentication"
	f := newBareFleetOf(t, lab.Debian11, 3)
	f.shipped = true
	f.certName = func(h *lab.Host) error { return f.issueClientCert(h, h.Name+".agents.example") }
	own := documentedUnder(t, firstClusterPage, heading, "you$")
	passwords := func() {
		for _, command := range own {
			f.runAsOperator(command)
		}
		f.check(f.Each(func(h *lab.Host) error { return f.copyToHost(h, "etcd.password") }))
	}
	passwords()
	all := documentedUnder(t, firstClusterPage, heading, "n1#")
	if len(all) != 5 || !strings.HasPrefix(all[0], "install ") || !strings.HasPrefix(all[2], "etcdctl user add ") ||
		!strings.HasPrefix(all[3], "export ETCDCTL_USER=") {
		t.Fatalf("the page has %q, where a file, a setting, a user, a login and a change are expected", all)
	}
	f.extraPerHost, f.login = all[:2], all[3]+"; "
	for _, command := range documentedUnder(t, firstClusterPage, "### Certificate authentication", "n1#") {
		if strings.HasPrefix(command, "etcdctl user add quorumd ") {
			command = all[2]
		}
		f.extraOnFirst = append(f.extraOnFirst, command)
	}
	f.bootstrapAndCheck()
	f.checkAuthentication()
	f.cutAllPower()
	f.checkAuthentication()

	passwords()
	f.shell(f.Hosts[0], script([]string{f.extraOnFirst[0], all[3], all[4]}))
	denied := func() (n int) {
		for _, h := range f.Hosts {
			if f.hasReason(h, string(policy.PermissionDenied)) {
				n++
			}
		}
		return n
	}
	f.within(f.limit(), "every quorumd reports that its password is refused", func() bool { return denied() == 3 })
	f.check(f.Each(func(h *lab.Host) error {
		_, err := h.Shell(t.Context(), script(all[:1]))
		return err
	}))
	f.within(f.limit(), "every quorumd is accepted with the new one", func() bool { return denied() == 0 })
	f.checkAuthentication()
}

// bootstrapAndCheck bootstraps a cluster of three voters with TLS, and checks it as its clients would.
func (f *bareFleet) bootstrapAndCheck() {
	t := f.t
	t.Helper()
	commands, began := documentedCommands(t, firstClusterPage, "n1#"), time.Now()
	f.bootstrapAsDocumented()
	t.Logf("three voters with TLS after %s, %d commands on the first host, %d on each other, %d for the certificates",
		time.Since(began).Round(time.Second), len(commands)-1+len(f.extraPerHost)+len(f.extraOnFirst),
		len(commands)-2+len(f.extraPerHost),
		len(documentedCommands(t, firstClusterPage, "you$")))
	members := f.shell(f.Hosts[0], f.login+commands[5])
	if strings.Count(members, ", started, ") != 3 || strings.Count(members, "https://") != 6 {
		t.Errorf("the members:\n%s", members)
	}
	plain := "etcdctl --command-timeout=3s --endpoints=http://10.77.0.1:2379 get a"
	if output, err := f.Hosts[0].Shell(t.Context(), plain); err == nil {
		t.Errorf("a client without TLS was accepted: %s", output)
	}
	for _, h := range f.Hosts {
		output := f.shell(h, "quorumctl config check")
		if !strings.Contains(output, "OK") || strings.Contains(output, "warning") {
			t.Errorf("%s: %s", h.Name, output)
		}
	}
}

// cutAllPower cuts the power of all hosts at once. They must come back unattended.
func (f *bareFleet) cutAllPower() {
	f.t.Helper()
	f.check(f.Each(func(h *lab.Host) error {
		if err := h.PowerLoss(f.t.Context()); err != nil {
			return err
		}
		if err := h.PowerOn(f.t.Context()); err != nil {
			return err
		}
		return h.Booted(f.t.Context())
	}))
	health := strings.Replace(documentedCommands(f.t, firstClusterPage, "n1#")[5], "member list",
		"endpoint health --cluster 2>&1", 1)
	f.within(f.limit(), "all are back with TLS", func() bool {
		output, err := f.Hosts[0].Shell(f.t.Context(), f.login+health)
		return err == nil && strings.Count(output, " is healthy") == 3
	})
}

// checkAuthentication checks that etcd serves the operator, that it refuses a certificate that names no etcd user, and
// that quorumd has the permissions it needs: the leader's host completes an operation.
func (f *bareFleet) checkAuthentication() {
	f.t.Helper()
	read := strings.Replace(documentedCommands(f.t, firstClusterPage, "n1#")[5], "member list", "get a", 1)
	f.shell(f.Hosts[0], f.login+read)
	stranger := strings.NewReplacer("client.crt", "peer.crt", "client.key", "peer.key").Replace(read) + " 2>&1 || true"
	if output := f.shell(f.Hosts[0], stranger); !strings.Contains(output, "permission denied") &&
		!strings.Contains(output, "user name not found") {
		f.t.Errorf("a client whose certificate names no user of etcd gets: %s", output)
	}
	leader := f.leader()
	f.within(f.limit(), leader.Name+" has completed an operation", func() bool {
		_, err := leader.Shell(f.t.Context(), "quorumctl cycle --reason authentication --wait=5m")
		return err == nil
	})
}

// loosenLimits allows hosts to share the machine and its disk, and appends the lab's sections disk and timing to the
// host's configuration. If shipped is set, it appends only the limits for the disk.
func (f *bareFleet) loosenLimits(h *lab.Host) error {
	settings := h.Settings()
	if f.shipped {
		delete(settings, "timing")
		delete(settings["disk"], "qualifySamples")
		delete(settings["disk"], "window")
	}
	for _, section := range []string{"disk", "timing"} {
		if settings[section] == nil {
			continue
		}
		text, err := json.Marshal(settings[section]) // JSON is YAML
		if err != nil {
			return err
		}
		add := fmt.Sprintf("echo '%s: %s' >>/etc/quorumd/quorumd.yaml", section, text)
		if _, err := h.Shell(f.t.Context(), add); err != nil {
			return err
		}
	}
	_, err := h.Shell(f.t.Context(), `sed -i 's/^host:/host:\n  allowSharedHardware: true/' /etc/quorumd/quorumd.yaml`)
	return err
}
