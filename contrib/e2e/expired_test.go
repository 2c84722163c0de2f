// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

// The certificates of the agent and of its etcd expired while their host was off. The agent still measures and answers,
// names the certificates and the command to run, and recovers without a restart when the files are replaced.
func TestAHostReportsCertificatesThatExpiredWhileItWasOffAndRecoversOnRenewal(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	w := securedWorld(t, a, worldOptions{hosts: 1, voters: 1, set: quickTimes()}, func(int) testbed.CertFiles {
		return a.issue("agent-n1")
	})
	n1 := w.hosts[0]
	member := a.issue("member-n1")
	n1.configure(map[string]string{
		"etcd.environment": "{}",
		"etcd.tls":         fmt.Sprintf("{ca: %s, cert: %s, key: %s}", member.CA, member.Cert, member.Key),
	})
	w.start()
	w.bootstrap()
	w.eventually("n1 is idle", func() bool { return n1.waitsFor(policy.Idle) })
	n1.stop()

	expire := func(name string) testbed.CertFiles {
		files, err := a.Expired(name)
		must(t, err)
		return files
	}
	agent := place(&n1.Options)
	put(t, agent, expire("agent-late"))
	put(t, member, expire("member-late"))
	w.start()
	const renew = "quorumctl pki renew n1"
	w.eventually("the log names the expired certificates and the command", func() bool {
		return n1.logHas(agent.Cert+" (subject CN=agent-late) expired on ") && n1.logHas(renew) &&
			n1.logHas("etcd.tls.cert: "+member.Cert+" (subject CN=member-late) expired on ")
	})
	w.eventually("both are a finding", func() bool {
		s, ok := n1.status()
		if !ok {
			return false
		}
		for _, f := range s.Health.Findings {
			if f.Code == string(health.CertificateInvalid) {
				return strings.Contains(f.Text, agent.Cert+" (subject CN=agent-late) expired on ") &&
					strings.Contains(f.Text, member.Cert+" (subject CN=member-late) expired on ") &&
					strings.Contains(f.Remedy, "'quorumctl pki renew NAME'")
			}
		}
		return false
	})
	w.eventually("the reason is its certificate", func() bool {
		s, ok := n1.status()
		return ok && len(s.Reasons) > 0 && strings.Contains(s.Reasons[0].Text, agent.Cert)
	})
	me().ctl(n1, "status").check(t, "status", 0, "(subject CN=member-late) expired on 20",
		"(subject CN=agent-late) expired on 20", "quorumctl pki renew") // a long file path may be wrapped
	w.eventually("the metrics are served", func() bool {
		text, ok := n1.fetch("/metrics")
		return ok && strings.Contains(text, "quorumd_")
	})

	put(t, agent, a.issue("agent-renewed"))
	put(t, member, a.issue("member-renewed"))
	w.eventually("n1 is idle without an operator", func() bool { return n1.waitsFor(policy.Idle) })
	w.eventually("the finding is gone", func() bool {
		s, ok := n1.status()
		if !ok {
			return false
		}
		for _, f := range s.Health.Findings {
			if f.Code == string(health.CertificateInvalid) {
				return false
			}
		}
		return true
	})
	if !n1.writes() {
		t.Error("its etcd takes no write")
	}
}
