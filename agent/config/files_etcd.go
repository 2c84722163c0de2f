// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// CheckEtcdFiles checks the files of etcd.tls and must run as etcd's user. It checks that this process can read them,
// that no key is open to every user, and that each certificate matches its key, is valid today, has the usages that
// etcd needs, covers the host of its URL, and is signed by a trusted CA. The error is Errors with every problem; it is
// nil if the section is missing.
func (c Config) CheckEtcdFiles() error {
	t := c.Etcd.TLS
	if t == nil {
		return nil
	}
	clients := listenerFiles{
		config: c, url: "etcd.clientURL", host: hostOf(c.Etcd.ClientURL), ca: t.CA, cert: t.Cert, key: t.Key,
		uses: map[string]x509.ExtKeyUsage{"serverAuth": x509.ExtKeyUsageServerAuth},
	}
	if c.Cluster.TLS != nil {
		clients.trust, clients.trustKey = c.Cluster.TLS.CA, "cluster.tls.ca"
	}
	peers := peerListener(c, PeerFiles{t.PeerCert, t.PeerKey, t.PeerCA}, hostOf(c.Etcd.PeerURL))
	now := time.Now()
	errs := append(clients.problems(now), peers.problems(now)...)
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// PeerFiles are the files with which etcd serves https to other members, and connects to them.
type PeerFiles struct{ Cert, Key, CA string }

// PeerFiles returns the files that quorumd sets for etcd, in etcd.tls or etcd.environment; empty ones if it sets none.
func (c Config) PeerFiles() PeerFiles {
	env := c.Environment("", "")
	return PeerFiles{env["ETCD_PEER_CERT_FILE"], env["ETCD_PEER_KEY_FILE"], env["ETCD_PEER_TRUSTED_CA_FILE"]}
}

// Complete reports whether all files are set.
func (f PeerFiles) Complete() bool { return f.Cert != "" && f.Key != "" && f.CA != "" }

// Check checks the files like CheckEtcdFiles, and must run as etcd's user. host is the host in etcd.peerURL, and name
// the name of this host.
func (f PeerFiles) Check(host, name string) error {
	c := Config{}
	c.Host.Name = name
	if errs := peerListener(c, f, host).problems(time.Now()); len(errs) > 0 {
		return errs
	}
	return nil
}

// EtcdDates returns a problem for each of etcd.tls.cert and etcd.tls.peerCert that is not valid today. It skips a file
// that this process cannot read or parse. etcd starts even with an expired certificate, but then no client can connect
// to it.
func (c Config) EtcdDates() []Problem {
	t := c.Etcd.TLS
	if t == nil {
		return nil
	}
	now := time.Now()
	var problems []Problem
	for _, f := range []struct{ key, path string }{{"etcd.tls.cert", t.Cert}, {"etcd.tls.peerCert", t.PeerCert}} {
		text, err := fileUser("").read(f.path)
		if err != nil {
			continue
		}
		certs, err := parseCertificates(f.path, text)
		if err != nil {
			continue
		}
		if err := checkDates(f.path, certs[0], now); err != nil {
			problems = append(problems, c.problemOf(f.key, err))
		}
	}
	return problems
}

// listenerFiles are the files of one of etcd's two listeners.
type listenerFiles struct {
	config        Config
	keyPrefix     string // the prefix of the configuration keys
	url, host     string // the key of the URL, and the host in it
	ca, cert, key string
	trust         string // file of the CA that must have signed the certificate; empty if unknown
	trustKey      string
	uses          map[string]x509.ExtKeyUsage
}

func peerListener(c Config, f PeerFiles, host string) listenerFiles {
	return listenerFiles{
		config: c, keyPrefix: "peer", url: "etcd.peerURL", host: host,
		ca: f.CA, cert: f.Cert, key: f.Key, trust: f.CA, trustKey: "etcd.tls.peerCA",
		uses: map[string]x509.ExtKeyUsage{
			"serverAuth": x509.ExtKeyUsageServerAuth, "clientAuth": x509.ExtKeyUsageClientAuth,
		},
	}
}

// keyOf returns the configuration key of a file.
func (p listenerFiles) keyOf(file string) string {
	if p.keyPrefix == "" {
		return "etcd.tls." + strings.ToLower(file)
	}
	return "etcd.tls." + p.keyPrefix + file
}

func (p listenerFiles) problems(now time.Time) Errors {
	u := fileUser("etcd's user")
	var errs Errors
	add := func(file string, err error) {
		if err != nil {
			errs = append(errs, p.config.problemOf(p.keyOf(file), err))
		}
	}
	add("CA", u.checkCAs(p.ca, now))
	keyPEM, keyErr := u.readPrivateKey(p.key)
	add("Key", keyErr)
	if keyErr == nil {
		add("Key", checkPrivate(p.key))
	}
	certPEM, certErr := u.read(p.cert)
	if certErr != nil {
		add("Cert", certErr)
		return errs
	}
	certs, err := parseCertificates(p.cert, certPEM)
	if err != nil {
		add("Cert", err)
		return errs
	}
	if err := checkDates(p.cert, certs[0], now); err != nil {
		add("Cert", err)
	} else {
		add("Cert", p.checkUse(u, certs, now))
	}
	if keyErr == nil {
		add("Key", checkPair(certPEM, keyPEM, p.cert, p.key))
	}
	return errs
}

// checkUse returns an error if the listener cannot use its certificate for a reason other than the certificate's dates,
// which the caller has checked: its key usage, its host or its CA.
func (p listenerFiles) checkUse(u fileUser, certs []*x509.Certificate, now time.Time) error {
	leaf := certs[0]
	for name, use := range p.uses {
		if !hasUsage(leaf, use) {
			return fmt.Errorf("etcd cannot use %s: its extended key usage lacks %s; issue one with %s",
				p.cert, name, name)
		}
	}
	if err := leaf.VerifyHostname(p.host); p.host != "" && err != nil {
		return fmt.Errorf("%s is not valid for %s, the host in %s: %s; issue one for that host", p.cert, p.host, p.url,
			strings.TrimPrefix(err.Error(), "x509: "))
	}
	if p.trust == "" {
		return nil
	}
	text, err := u.read(p.trust)
	if err != nil {
		return nil //nolint:nilerr // the check of that file reports it
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	for _, c := range certs[1:] {
		intermediates.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("%s was not signed by a CA in %s (%s): %s; issue it from one of those CAs, or correct %s",
			p.cert, p.trust, p.trustKey, strings.TrimPrefix(err.Error(), "x509: "), p.trustKey)
	}
	return nil
}

// checkPrivate returns an error if every user of this host has access to a private key.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("%s (mode %04o) is open to every user on this host; let only its owner and "+
			"etcd's group read it: chmod 0640", path, mode)
	}
	return nil
}

// hostOf returns the host of a valid URL.
func hostOf(url string) string {
	host, _, err := net.SplitHostPort(address(url))
	if err != nil {
		return ""
	}
	return host
}
