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

// CheckEtcdFiles checks the files of etcd.tls as etcd's user: this process can read them, each certificate matches its
// key, is valid today, has the usages that etcd needs, covers the host of its URL, and is signed by a trusted CA. The
// error is Errors with every problem. Without the section there is none.
func (c Config) CheckEtcdFiles() error {
	t := c.Etcd.TLS
	if t == nil {
		return nil
	}
	clients := pairFiles{
		of: c, what: "", url: "etcd.clientURL", host: hostOf(c.Etcd.ClientURL), ca: t.CA, cert: t.Cert, key: t.Key,
		uses: map[string]x509.ExtKeyUsage{"serverAuth": x509.ExtKeyUsageServerAuth},
	}
	if c.Cluster.TLS != nil {
		clients.trust, clients.trustKey = c.Cluster.TLS.CA, "cluster.tls.ca"
	}
	peers := pairFiles{
		of: c, what: "peer", url: "etcd.peerURL", host: hostOf(c.Etcd.PeerURL),
		ca: t.PeerCA, cert: t.PeerCert, key: t.PeerKey, trust: t.PeerCA, trustKey: "etcd.tls.peerCA",
		uses: map[string]x509.ExtKeyUsage{
			"serverAuth": x509.ExtKeyUsageServerAuth, "clientAuth": x509.ExtKeyUsageClientAuth,
		},
	}
	now := time.Now()
	errs := append(clients.problems(now), peers.problems(now)...)
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// EtcdDates returns the certificates of etcd.tls that are not valid today, with file and date. It checks only those
// that this process can read. etcd starts with an expired certificate, and no client can connect to it.
func (c Config) EtcdDates() []Problem {
	t := c.Etcd.TLS
	if t == nil {
		return nil
	}
	now := time.Now()
	var problems []Problem
	for _, f := range []struct{ key, path string }{{"etcd.tls.cert", t.Cert}, {"etcd.tls.peerCert", t.PeerCert}} {
		text, err := eyes("").readNamed(f.path)
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

// pairFiles are the files of one of etcd's two listeners.
type pairFiles struct {
	of            Config
	what          string // prefix of the keys
	url, host     string // the key of the URL, and the host in it
	ca, cert, key string
	trust         string // file of the CA that must have signed cert; empty if it is not known here
	trustKey      string
	uses          map[string]x509.ExtKeyUsage
}

// named returns the configuration key of a file.
func (p pairFiles) named(file string) string {
	if p.what == "" {
		return "etcd.tls." + strings.ToLower(file)
	}
	return "etcd.tls." + p.what + file
}

func (p pairFiles) problems(now time.Time) Errors {
	e := eyes("etcd's user")
	var errs Errors
	add := func(file string, err error) {
		if err != nil {
			errs = append(errs, p.of.problemOf(p.named(file), err))
		}
	}
	add("CA", e.checkAuthorities(p.ca, now))
	keyPEM, keyErr := e.readPrivateKey(p.key)
	add("Key", keyErr)
	if keyErr == nil {
		add("Key", closed(p.key))
	}
	certPEM, certErr := e.readNamed(p.cert)
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
		add("Cert", p.fits(e, certs, now))
	}
	if keyErr == nil {
		add("Key", checkPair(certPEM, keyPEM, p.cert, p.key))
	}
	return errs
}

// fits returns an error if a certificate that is valid today does not suit this listener.
func (p pairFiles) fits(e eyes, certs []*x509.Certificate, now time.Time) error {
	leaf := certs[0]
	for name, use := range p.uses {
		if !usable(leaf, use) {
			return fmt.Errorf("%s may not be used as etcd uses it (its extended key usage lacks %s); issue one with %s",
				p.cert, name, name)
		}
	}
	if err := leaf.VerifyHostname(p.host); p.host != "" && err != nil {
		return fmt.Errorf("%s is not good for %s, which %s names: %s; issue one with that name", p.cert, p.host, p.url,
			strings.TrimPrefix(err.Error(), "x509: "))
	}
	if p.trust == "" {
		return nil
	}
	text, err := e.readNamed(p.trust)
	if err != nil {
		return nil //nolint:nilerr // that is said with its own key, or by who is to read it
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("%s was not signed by a CA in %s, which %s names: %s; take both from one CA",
			p.cert, p.trust, p.trustKey, strings.TrimPrefix(err.Error(), "x509: "))
	}
	return nil
}

// closed returns an error if other users of this host can read a private key.
func closed(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return fmt.Errorf("%s (mode %04o) is open to every user on this host; chmod 0640, with etcd's "+
			"group", path, mode)
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
