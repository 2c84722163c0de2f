// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// newPKI creates a CA, and returns a function that installs certificates on a host and returns the section etcd.tls.
func newPKI(t *testing.T) func(h *host) string {
	t.Helper()
	dir := t.TempDir()
	must(t, pki.Create(filepath.Join(dir, "pki"), time.Now()))
	authority, err := pki.Open(filepath.Join(dir, "pki"), time.Now())
	must(t, err)
	return func(h *host) string {
		t.Helper()
		bundle, err := authority.Host(h.Options.Name, []string{"127.0.0.1"}, time.Now())
		must(t, err)
		files := filepath.Join(dir, h.Options.Name)
		_, err = pki.Install(bundle, pki.Place{Dir: files, Etcd: -1, Quorumd: -1}, time.Now())
		must(t, err)
		return etcdTLS(files, filepath.Join(files, "peer-ca.crt"))
	}
}

// certify writes a peer certificate that is valid for one address alone, replacing the previous one, and returns the
// section etcd.tls. It does not use quorumctl pki, which adds localhost to every certificate.
func (a authority) certify(h *host, address string) string {
	a.t.Helper()
	peer, err := a.Issue("peer-"+h.Options.Name, testbed.CertOptions{IPs: []net.IP{net.ParseIP(address)}})
	must(a.t, err)
	f := a.issue(h.Options.Name)
	return fmt.Sprintf("{ca: %[1]s, cert: %[2]s, key: %[3]s, peerCert: %[4]s, peerKey: %[5]s}", f.CA, f.Cert, f.Key,
		peer.Cert, peer.Key)
}

// configurePeer restarts the agent of a host with a different section etcd.tls, which may be empty, and a different
// peer URL.
func (h *host) configurePeer(tls, peerURL string) {
	h.w.t.Helper()
	delete(h.Options.Set, "etcd.tls")
	if tls != "" {
		h.Options.Set["etcd.tls"] = tls
	}
	h.configurePeerURL(peerURL)
}

// readdressed runs a readdress of these hosts, or of all, to its end. It repeats the request until the hosts accept it.
func (w *world) readdressed(what string, hosts ...string) {
	w.t.Helper()
	began := time.Now()
	w.eventually("the hosts accept the readdress: "+what, func() bool {
		refused := w.hosts[0].readdress(hosts...)
		if refused != "" {
			w.t.Log(refused)
		}
		return refused == ""
	})
	w.within(4*formation, what, func() bool { return w.hosts[0].rolloutIs(record.RolloutDone) })
	w.t.Logf("%s took %.1f s", what, time.Since(began).Seconds())
	if err := w.connected(); err != nil {
		w.t.Error(err)
	}
}

// securedPeers counts the members whose registered peer URL is https.
func (w *world) securedPeers() (n int) {
	for _, url := range w.peerURLs() {
		if strings.HasPrefix(url, "https:") {
			n++
		}
	}
	return n
}

func TestPeerURLsBecomeHTTPSAndHTTPAgainUnderWrites(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	certify := newPKI(t)
	load := w.retrying(50)
	sections := map[*host]string{}
	for _, h := range w.hosts {
		sections[h] = certify(h)
		h.configurePeer(sections[h], h.Options.PeerURL)
	}
	w.readdressed("every etcd gets certificates", "n1", "n2", "n3")
	for _, h := range w.hosts {
		h.configurePeer(sections[h], https(h.Options.PeerURL))
	}
	w.eventually("the planned readdress includes all hosts", func() bool { return w.hosts[0].plannedReaddress() == 3 })
	w.readdressed("http to https")
	if n := w.securedPeers(); n != 3 {
		t.Fatalf("%d peer URLs are https", n)
	}
	w.oneAtATime()
	checkReport(t, load)

	load = w.retrying(50)
	for _, h := range w.hosts {
		h.configurePeer(sections[h], strings.Replace(h.Options.PeerURL, "https:", "http:", 1))
	}
	w.eventually("the planned readdress includes all hosts", func() bool { return w.hosts[0].plannedReaddress() == 3 })
	w.readdressed("https to http")
	if n := w.securedPeers(); n != 0 {
		t.Fatalf("%d peer URLs are https", n)
	}
	for _, h := range w.hosts {
		h.configurePeer("", h.Options.PeerURL)
	}
	w.readdressed("every etcd loses its certificates", "n1", "n2", "n3")
	checkReport(t, load)
	w.verify(3, 0)
}

func TestNoURLBecomesHTTPSUntilEveryEtcdHasASuitableCertificate(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	a := newAuthority(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	refuses := func(what string, hosts []string, text string) {
		t.Helper()
		last := ""
		w.eventually(what, func() bool {
			req := control.RolloutRequest{Work: policy.WorkReaddress, Hosts: hosts, Reason: "https", DryRun: true}
			_, last = ask(n1, req, n1.Client.StartRollout)
			return strings.Contains(last, text)
		})
		t.Log(last)
	}
	n2.configurePeerURL(https(n2.Options.PeerURL))
	refuses("without certificates", []string{"n2"}, "n2: etcd.peerURL is https://")
	for _, h := range []*host{n1, n3} {
		h.configurePeer(a.certify(h, "127.0.0.1"), h.Options.PeerURL)
	}
	n2.configurePeer(a.certify(n2, "127.0.0.1"), n2.Options.PeerURL)
	refuses("the others' etcds run without theirs", []string{"n2"},
		"the running etcd on n1 and n3 was started without the configured peer certificate")
	a.certify(n2, "127.0.0.9")
	refuses("a certificate without the address", []string{"n2"}, "is not valid for 127.0.0.1, the host in etcd.peerURL")
	if n := w.securedPeers(); n != 0 {
		t.Fatalf("%d peer URLs are https", n)
	}
	a.certify(n2, "127.0.0.1")
	w.readdressed("n1 and n3 get certificates", "n1", "n3")
	w.readdressed("then n2 changes to https", "n2")
	n3.configurePeer("", n3.Options.PeerURL) // too early
	refuses("n3 without certificates, while n2 needs them", []string{"n3"},
		"remove it only once all peer URLs are http")
	w.verify(3, 0)
}

// The certificate of n2 is valid for its peer URL, and not for the address from which n2 connects: etcd refuses the
// certificate after the handshake. n3's etcd still has connections to n2, so n2 would look connected.
func TestAPeerWhoseCertificateLacksItsSourceAddressIsFoundBeforeTheSecondStep(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	a := newAuthority(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	addresses := map[*host]string{n1: "127.0.0.1", n2: "127.0.0.2", n3: "127.0.0.1"}
	sections := map[*host]string{}
	for h, address := range addresses {
		sections[h] = a.certify(h, address)
		h.configurePeer(sections[h], strings.Replace(h.Options.PeerURL, "127.0.0.1", address, 1))
	}
	w.readdressed("every etcd gets certificates", "n1", "n2", "n3")
	load := w.retrying(50)
	n2.configurePeer(sections[n2], https(n2.Options.PeerURL))
	w.readdressed("n2 changes to https", "n2")
	before := n3.Options.PeerURL
	n3.configurePeer(sections[n3], https(before))
	w.eventually("the readdress of n3 is accepted", func() bool { return n1.readdress("n3") == "" })
	const refused = "n2 reports: GET https://127.0.0.1:"
	w.within(2*formation, "n3 reports that n2 is refused", func() bool {
		return n3.reports(policy.Returning, refused) || n3.reports(policy.NotBack, refused)
	})
	if s, ok := n3.status(); ok {
		t.Log(s.Reasons)
	}
	w.never(5*time.Second, "the readdress ends", func() bool { return n1.rolloutIs(record.RolloutDone) })
	n3.configurePeer(sections[n3], before) // undo the change
	w.within(4*formation, "the rollout is done", func() bool { return n1.rolloutIs(record.RolloutDone) })
	if n := w.securedPeers(); n != 1 {
		t.Errorf("%d peer URLs are https, want that of n2", n)
	}
	checkReport(t, load)
	w.verify(3, 0)
}

// One port serves both schemes, so clients with either scheme work until all have changed to https.
func TestClientURLsBecomeHTTPSOverOnePort(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	a := newAuthority(t)
	client := a.issue("client")
	var endpoints []string
	for _, h := range w.hosts {
		endpoints = append(endpoints, https(h.Options.ClientURL))
		h.Options.Set["etcd.listenClientURL"] = h.Options.ClientURL + "," + https(h.Options.ClientURL)
		h.configurePeer(a.certify(h, "127.0.0.1"), h.Options.PeerURL)
	}
	before := w.retrying(50)
	w.readdressed("both schemes", "n1", "n2", "n3")
	for _, h := range w.hosts { // the harness keeps the http URL
		h.stop()
		h.Options.Set["etcd.clientURL"] = https(h.Options.ClientURL)
		h.Options.Set["cluster.endpoints"] = "[" + strings.Join(endpoints, ", ") + "]"
		h.Options.Set["cluster.tls"] = fmt.Sprintf("{ca: %s, cert: %s, key: %s}", client.CA, client.Cert, client.Key)
		must(t, h.WriteConfig())
		w.start(h)
	}
	w.eventually("the planned readdress includes all hosts", func() bool { return w.hosts[0].plannedReaddress() == 3 })
	w.readdressed("https is announced")
	for _, m := range w.members() {
		if !strings.HasPrefix(strings.Join(m.ClientURLs, ","), "https:") {
			t.Errorf("%s has the client URLs %v", m.Name, m.ClientURLs)
		}
	}
	after, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, TLS: &client, Rate: 50, Retry: true, Timeout: 5 * time.Second,
	})
	must(t, err)
	t.Cleanup(func() { after.Stop() })
	checkReport(t, before) // from here on, all clients use https

	conf, err := client.ClientConfig()
	must(t, err)
	for _, h := range w.hosts {
		h.etcd, err = clientv3.New(clientv3.Config{
			Endpoints: []string{https(h.Options.ClientURL)}, TLS: conf, Logger: zap.NewNop(),
		})
		must(t, err)
		t.Cleanup(func() { _ = h.etcd.Close() }) // an error does not matter, because the test has ended
		h.stop()
		h.Options.Set["etcd.listenClientURL"] = https(h.Options.ClientURL)
		must(t, h.WriteConfig())
		w.start(h)
	}
	n1 := w.hosts[0]
	w.eventually("the last readdress is accepted", func() bool { return n1.readdress("n1", "n2", "n3") == "" })
	w.eventually("the last readdress runs", func() bool { return n1.rolloutIs(record.RolloutRunning) })
	w.within(4*formation, "http is closed", func() bool { return n1.rolloutIs(record.RolloutDone) })
	if _, err := w.hosts[1].etcdMetrics(); err == nil {
		t.Error("n2 still serves http")
	}
	checkReport(t, after)
	w.verify(3, 0)
}
