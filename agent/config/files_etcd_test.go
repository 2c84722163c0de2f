// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/x509"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// secured returns a host whose etcd has files from the given CA, and whose quorumd trusts that CA.
func secured(t *testing.T, ca *testbed.CA) (Config, *EtcdTLS) {
	t.Helper()
	files, err := ca.Issue("good", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &EtcdTLS{
		CA: files.CA, Cert: files.Cert, Key: files.Key,
		PeerCA: files.CA, PeerCert: files.Cert, PeerKey: files.Key,
	}
	return Config{
		Cluster: Cluster{TLS: &TLS{CA: files.CA}},
		Etcd: Etcd{
			ClientURL: "https://127.0.0.1:2379", PeerURL: "https://127.0.0.1:2380", TLS: s,
		},
	}, s
}

func TestEtcdFilesAreChecked(t *testing.T) {
	t.Parallel()
	newCA := func() *testbed.CA {
		ca, err := testbed.NewCA(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return ca
	}
	ca, other := newCA(), newCA()
	issue := func(files testbed.CertFiles, err error) testbed.CertFiles {
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	stranger, expired, elsewhere := issue(ca.WrongCA("x")), issue(ca.Expired("y")), issue(ca.WrongSAN("z"))
	server := newPKI(t)
	serverOnly, serverKey := server.pair("server", 2000, 2999, x509.ExtKeyUsageServerAuth)
	open := filepath.Join(t.TempDir(), "open.key")
	text, err := os.ReadFile(issue(ca.Issue("w", testbed.CertOptions{})).Key)
	if err != nil || os.WriteFile(open, text, 0o600) != nil || os.Chmod(open, 0o644) != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		change  func(c *Config, s *EtcdTLS)
		wantErr []string // empty: no problem
	}{
		"correct files": {func(*Config, *EtcdTLS) {}, nil},
		"no section":    {func(c *Config, _ *EtcdTLS) { c.Etcd.TLS = nil }, nil},
		"an expired certificate": {
			func(_ *Config, s *EtcdTLS) { s.Cert, s.Key = expired.Cert, expired.Key },
			[]string{"etcd.tls.cert: " + expired.Cert + " (subject CN=y) expired on"},
		},
		"a certificate for another host": {
			func(_ *Config, s *EtcdTLS) { s.PeerCert, s.PeerKey = elsewhere.Cert, elsewhere.Key },
			[]string{"etcd.tls.peerCert: " + elsewhere.Cert + " is not valid for 127.0.0.1, the host in etcd.peerURL"},
		},
		"a certificate of another CA": {
			func(_ *Config, s *EtcdTLS) { s.Cert, s.Key = stranger.Cert, stranger.Key },
			[]string{" (cluster.tls.ca): ", "issue it from one of those CAs, or correct cluster.tls.ca"},
		},
		"another host's key": {
			func(_ *Config, s *EtcdTLS) { s.PeerKey = stranger.Key },
			[]string{"etcd.tls.peerKey: " + stranger.Key + " does not match the certificate"},
		},
		"a CA that quorumd does not trust": {
			func(c *Config, _ *EtcdTLS) { c.Cluster.TLS.CA = other.File },
			[]string{"etcd.tls.cert: ", "was not signed by a CA in " + other.File},
		},
		"a peer certificate for servers only": {
			func(_ *Config, s *EtcdTLS) { s.PeerCert, s.PeerKey = serverOnly, serverKey },
			[]string{"etcd.tls.peerCert: ", "lacks clientAuth"},
		},
		"a key that every user can read": {
			func(_ *Config, s *EtcdTLS) { s.Key = open },
			[]string{"etcd.tls.key: " + open + " (mode 0644) is open to every user on this host; let only its owner"},
		},
		"missing files": {
			func(_ *Config, s *EtcdTLS) { s.CA, s.Cert, s.Key = "/nowhere/a", "/nowhere/b", "/nowhere/c" },
			[]string{"etcd.tls.ca: /nowhere/a does not exist", "etcd.tls.cert: ", "etcd.tls.key: "},
		},
	} {
		conf, s := secured(t, ca)
		c.change(&conf, s)
		err := conf.CheckEtcdFiles()
		if (err == nil) != (c.wantErr == nil) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range c.wantErr {
			if _, ok := errors.AsType[Errors](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in\n%v", what, want, err)
			}
		}
	}
}

func TestExpiredEtcdCertificateIsReportedWithItsDate(t *testing.T) {
	t.Parallel()
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	conf, s := secured(t, ca)
	if problems := conf.EtcdDates(); len(problems) > 0 {
		t.Errorf("valid certificates: %v", problems)
	}
	expired, err := ca.Expired("peer")
	if err != nil {
		t.Fatal(err)
	}
	s.PeerCert, s.Cert = expired.Cert, "/nowhere"
	problems := conf.EtcdDates()
	if len(problems) != 1 || problems[0].Key != "etcd.tls.peerCert" ||
		!strings.HasPrefix(problems[0].Message, expired.Cert+" (subject CN=peer) expired on 20") {
		t.Errorf("with an expired and a missing certificate: %v", problems)
	}
}

func TestEtcdVariablesFollowFromTheTLSSection(t *testing.T) {
	t.Parallel()
	text := strings.Replace(strings.ReplaceAll(valid, "http:", "https:"), "etcd:", "  tls: {}\netcd:", 1)
	const warning = "the certificate of any client is accepted at etcd's peer port"
	for section, want := range map[string]map[string]string{
		"{ca: /t/ca, cert: /t/c, key: /t/k}": {
			"ETCD_CERT_FILE": "/t/c", "ETCD_KEY_FILE": "/t/k", "ETCD_TRUSTED_CA_FILE": "/t/ca",
			"ETCD_CLIENT_CERT_AUTH": "true", "ETCD_PEER_CERT_FILE": "/t/c", "ETCD_PEER_KEY_FILE": "/t/k",
			"ETCD_PEER_TRUSTED_CA_FILE": "/t/ca", "ETCD_PEER_CLIENT_CERT_AUTH": "true",
		},
		"{ca: /t/ca, cert: /t/c, key: /t/k, peerCA: /p/ca, peerCert: /p/c, peerKey: /p/k}": {
			"ETCD_CERT_FILE": "/t/c", "ETCD_KEY_FILE": "/t/k", "ETCD_TRUSTED_CA_FILE": "/t/ca",
			"ETCD_CLIENT_CERT_AUTH": "true", "ETCD_PEER_CERT_FILE": "/p/c", "ETCD_PEER_KEY_FILE": "/p/k",
			"ETCD_PEER_TRUSTED_CA_FILE": "/p/ca", "ETCD_PEER_CLIENT_CERT_AUTH": "true",
		},
	} {
		c := mustParse(t, text+"  tls: "+section+"\n")
		shared := want["ETCD_PEER_TRUSTED_CA_FILE"] == want["ETCD_TRUSTED_CA_FILE"]
		if len(c.Warnings) > 1 || shared != strings.Contains(strings.Join(c.Warnings, ""), warning) {
			t.Errorf("%s: %q", section, c.Warnings)
		}
		env := c.Environment(c.SingleMember(), "token")
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if env[name] != want[name] {
				t.Errorf("%s: %s is %q, want %q", section, name, env[name], want[name])
			}
		}
	}
}
