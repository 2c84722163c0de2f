// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificates reads when certificates expire: those in files, and those that etcd's members present.
//
// It reads a bounded number of bytes and certificates of each file. It makes one TLS handshake with each of at most 64
// ports of the members, and disconnects; the handshakes take no longer than the context allows. It does not check
// whether a certificate is trusted.
package certificates

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/quorumd/quorumd/health"
)

// Files are the certificate files to read. Unreadable files are skipped, because some are readable only for certain
// users.
type Files struct {
	// Chains are files with a certificate and its issuers: the one that expires first counts.
	Chains []string
	// Authorities are files with one or more CA certificates, several during a rotation: the one that expires last
	// counts.
	Authorities []string
}

const (
	mostBytes   = 1 << 20 // bytes read of a file
	mostInFile  = 256     // certificates read of a file
	mostPorts   = 64      // members' ports checked in one reading
	mostSubject = 100     // characters kept of a subject
)

// Reader reads certificates. Create it with [New].
type Reader struct {
	files Files
	tls   func() *tls.Config
	wall  func() time.Time
}

// New returns a reader of these files. config returns the current TLS configuration, nil for none; wall returns the
// time of the wall clock.
func New(files Files, config func() *tls.Config, wall func() time.Time) *Reader {
	return &Reader{files: files, tls: config, wall: wall}
}

// Read reads the files, and the certificates presented at these URLs.
func (r *Reader) Read(ctx context.Context, urls []string) health.CertificateReading {
	now := r.wall()
	var all []health.Certificate
	for _, path := range distinct(r.files.Chains) {
		if certs := inFile(path); len(certs) > 0 {
			all = append(all, named(health.HolderOwn, path, first(certs), now))
		}
	}
	for _, path := range distinct(r.files.Authorities) {
		if certs := inFile(path); len(certs) > 0 {
			all = append(all, named(health.HolderCA, path, last(certs), now))
		}
	}
	all = append(all, r.shown(ctx, urls, now)...)
	if len(all) == 0 {
		return health.CertificateReading{Absent: "no certificate: etcd uses no TLS, or does not respond"}
	}
	return health.CertificateReading{Known: true, All: all}
}

func distinct(paths []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(paths)))
	return slices.DeleteFunc(sorted, func(path string) bool { return path == "" })
}

func named(of health.Holder, name string, c *x509.Certificate, now time.Time) health.Certificate {
	return health.Certificate{
		Of: of, Name: name, Subject: subject(c), Until: c.NotAfter, Left: c.NotAfter.Sub(now),
		Life: c.NotAfter.Sub(c.NotBefore),
	}
}

// subject returns a certificate's subject, shortened and reduced to characters that are safe on a terminal: any server
// may have sent it.
func subject(c *x509.Certificate) string {
	text := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, c.Subject.String()))
	if len(text) > mostSubject {
		return string(text[:mostSubject]) + "…"
	}
	return string(text)
}

// first returns the certificate that expires first.
func first(certs []*x509.Certificate) *x509.Certificate {
	return slices.MinFunc(certs, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
}

// last returns the certificate that expires last.
func last(certs []*x509.Certificate) *x509.Certificate {
	return slices.MaxFunc(certs, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
}

// inFile returns the certificates of a PEM file, none if it is unreadable or too large.
func inFile(path string) []*x509.Certificate {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil || len(data) > mostBytes {
		return nil
	}
	return inPEM(data)
}

func inPEM(data []byte) (certs []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil && len(certs) < mostInFile; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, c)
		}
	}
	return certs
}

// shown returns, of each chain presented at an https URL, the certificate that expires first. It omits duplicates at
// other ports of the same host. It connects to at most mostPorts ports, all in parallel.
func (r *Reader) shown(ctx context.Context, urls []string, now time.Time) []health.Certificate {
	config := r.tls()
	if config == nil { // this host needs no TLS as a client, but the peer URLs may be https
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	var hosts []string
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Scheme == "https" {
			hosts = append(hosts, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
		}
	}
	hosts = distinct(hosts)
	hosts = hosts[:min(len(hosts), mostPorts)]
	found := make([]*x509.Certificate, len(hosts))
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() { found[i] = shownAt(ctx, host, config.Clone()) })
	}
	wait.Wait()
	var all []health.Certificate
	for i, c := range found {
		if c != nil && !slices.ContainsFunc(all, sameOf(hosts[i], c)) {
			all = append(all, named(health.HolderMember, hosts[i], c, now))
		}
	}
	return all
}

// sameOf returns a function that reports whether a certificate is the given one, presented at another port of the same
// host.
func sameOf(address string, c *x509.Certificate) func(health.Certificate) bool {
	host, _, _ := net.SplitHostPort(address)
	return func(other health.Certificate) bool {
		at, _, _ := net.SplitHostPort(other.Name)
		return at == host && other.Subject == subject(c) && other.Until.Equal(c.NotAfter)
	}
}

// shownAt returns the certificate that expires first in the chain that the server presents; nil if there is none.
func shownAt(ctx context.Context, host string, config *tls.Config) (shown *x509.Certificate) {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil
	}
	config.ServerName = name
	config.InsecureSkipVerify = true // an expired certificate has to be read, too; nothing is sent over the connection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) > 0 {
			shown = first(state.PeerCertificates)
		}
		return nil
	}
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return shown // other checks report a failed handshake
	}
	conn.Close()
	return shown
}
