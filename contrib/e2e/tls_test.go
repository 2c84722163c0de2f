// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

// authority is the CA that issues the certificates of a world.
type authority struct {
	t *testing.T
	*testbed.CA
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return authority{t, ca}
}

func (a authority) issue(name string) testbed.CertFiles {
	a.t.Helper()
	files, err := a.Issue(name, testbed.CertOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return files
}

// stranger issues a certificate of an untrusted CA.
func (a authority) stranger(name string) testbed.CertFiles {
	a.t.Helper()
	files, err := a.WrongCA(name)
	if err != nil {
		a.t.Fatal(err)
	}
	return files
}

// put replaces files while they are in use, each atomically.
func put(t *testing.T, place, with testbed.CertFiles) {
	t.Helper()
	for to, from := range map[string]string{place.CA: with.CA, place.Cert: with.Cert, place.Key: with.Key} {
		text, err := os.ReadFile(from)
		if err = errors.Join(err, os.WriteFile(to+".new", text, 0o600), os.Rename(to+".new", to)); err != nil {
			t.Fatal(err)
		}
	}
}

// place returns the names of a host's files for its agent. Each host has its own files, so that a test can replace them
// separately.
func place(o *testbed.HostOptions) testbed.CertFiles {
	in := func(name string) string { return filepath.Join(filepath.Dir(o.Dir), o.Name+"-"+name) }
	return testbed.CertFiles{CA: in("ca.crt"), Cert: in("agent.crt"), Key: in("agent.key")}
}

// securedWorld makes a world with mutual TLS: agents present certificates to etcd, and etcd presents its own to agents
// and peers.
func securedWorld(t *testing.T, a authority, o worldOptions, agentsFiles func(i int) testbed.CertFiles) *world {
	t.Helper()
	o.each = func(i int, h *testbed.HostOptions) {
		for _, url := range []*string{&h.ClientURL, &h.PeerURL, &h.ListenClientURL, &h.ListenPeerURL} {
			*url = https(*url)
		}
		var endpoints []string
		for _, url := range h.Endpoints {
			endpoints = append(endpoints, https(url))
		}
		h.Endpoints = endpoints
		member, agent := a.issue("member-"+h.Name), place(h)
		put(t, agent, agentsFiles(i))
		h.Set["cluster.tls"] = fmt.Sprintf("{ca: %s, cert: %s, key: %s}", agent.CA, agent.Cert, agent.Key)
		var env []string
		for _, side := range []string{"", "PEER_"} {
			env = append(env,
				"ETCD_"+side+"CERT_FILE: "+member.Cert, "ETCD_"+side+"KEY_FILE: "+member.Key,
				"ETCD_"+side+"TRUSTED_CA_FILE: "+member.CA, "ETCD_"+side+`CLIENT_CERT_AUTH: "true"`)
		}
		h.Set["etcd.environment"] = "{" + strings.Join(env, ", ") + "}"
	}
	w := newWorld(t, o)
	config, err := a.issue("test").ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range w.hosts {
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{h.Options.ClientURL}, TLS: config,
			Logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() }) // an error does not matter, because the test has ended
		h.etcd = client
	}
	return w
}

func https(url string) string { return strings.Replace(url, "http:", "https:", 1) }

// reasonIs reports whether the first reason has this code and a text that contains text.
func (h *host) reasonIs(code policy.ReasonCode, text string) bool {
	s, ok := h.status()
	return ok && len(s.Reasons) > 0 && s.Reasons[0].Code == string(code) && strings.Contains(s.Reasons[0].Text, text)
}

func TestHostsJoinOverTLSAndReloadReplacedCertificates(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	const (
		refused   = "TLS: it refuses this host's certificate"
		untrusted = "TLS: this host does not trust its certificate"
	)
	w := securedWorld(t, a, worldOptions{hosts: 4, voters: 3}, func(i int) testbed.CertFiles {
		switch i {
		case 3:
			return a.stranger("stranger")
		case 4:
			files := a.issue("agent-n4")
			files.CA = other.File
			return files
		}
		return a.issue(fmt.Sprintf("agent-n%d", i))
	})
	n1, n3, n4 := w.hosts[0], w.hosts[2], w.hosts[3]
	w.start()
	w.bootstrap()
	w.eventually("the host with an untrusted certificate reports it", func() bool {
		return n3.reasonIs(policy.ClusterUnreachable, refused)
	})
	w.eventually("the host that trusts a different CA reports it", func() bool {
		return n4.reasonIs(policy.ClusterUnreachable, untrusted)
	})
	me().ctl(n3, "explain").check(t, "explain", 0, "CLUSTER_UNREACHABLE", refused, "cluster.tls.cert")
	me().ctl(n4, "explain").check(t, "explain", 0, "CLUSTER_UNREACHABLE", untrusted, "cluster.tls.ca")

	put(t, place(&n3.Options), a.issue("agent-n3"))
	w.verify(3, 0)
	put(t, place(&n4.Options), a.issue("agent-n4"))
	w.eventually("the fourth host observes the cluster", func() bool { return n4.waitsFor(policy.TargetMet) })

	untouched := n1.expectSameProcess()
	put(t, place(&n1.Options), a.stranger("late"))
	w.eventually("the voter uses the certificate that was put in place", func() bool {
		return n1.reasonIs(policy.NoQuorum, refused)
	})
	put(t, place(&n1.Options), a.issue("renewed"))
	w.eventually("the voter uses the renewed certificate", func() bool { return n1.waitsFor(policy.Idle) })
	if err := os.WriteFile(place(&n1.Options).Key, []byte("half a k"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.eventually("a damaged key is reported", func() bool {
		return n1.logHas("cannot reload TLS files or the password; keeping the old ones")
	})
	if !n1.waitsFor(policy.Idle) {
		t.Error("the files in use were replaced with damaged ones")
	}
	untouched("certificates were replaced")
	w.eventually("n1's etcd reports its state, and until when its certificate is valid", func() bool {
		s, ok := n1.status()
		return ok && !slices.ContainsFunc(s.Health.NotAvailable, func(a health.Absence) bool {
			return a.Check == "etcd-quota" || a.Check == "etcd-leaders" || a.Check == "certificates"
		})
	})
	w.verify(3, 0)
}
