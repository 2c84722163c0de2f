// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type certificate = x509.Certificate

// Certificate describes one certificate for operators.
type Certificate struct {
	File  string    `json:"file"` // file name without the directory
	What  string    `json:"what"` // owner and purpose
	Names []string  `json:"names"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Days  int       `json:"days"` // days of validity left, rounded down; negative after the certificate has expired
	// Shared is set for a CA that is trusted at both ports of etcd: a client's certificate is then accepted at the
	// peer port.
	Shared bool `json:"shared,omitempty"`
}

// Inspect returns the certificates in a directory, ordered by expiry: in a CA directory, the CAs and the newest
// certificates of each host; in any other, the certificates in all files that end in .crt.
func Inspect(dir string, now time.Time) ([]Certificate, error) {
	paths, err := filepath.Glob(filepath.Join(quoteGlob(dir), "*.crt"))
	if err != nil {
		return nil, err
	}
	if newest, err := records(dir); err == nil {
		for _, path := range newest {
			paths = append(paths, path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(paths) == 0 {
		const remedy = "'pki init' creates the CAs, and 'pki install' installs a host's certificates"
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, mistyped(remedy, "there is no %s", dir)
		}
		if err != nil {
			return nil, err
		}
		return nil, refused(remedy, "there is no certificate in %s", dir)
	}
	if len(paths) > 2*maxHosts {
		return nil, refused("name a CA directory, or the directory of a host's certificates",
			"%s has too many certificate files: %d", dir, len(paths))
	}
	slices.Sort(paths)
	shared := sharedIn(dir)
	var all []Certificate
	for _, path := range paths {
		certs, err := readCertificates(path)
		if err != nil {
			return nil, err
		}
		for _, c := range certs {
			d := describe(filepath.Base(path), c, now)
			d.Shared = slices.ContainsFunc(shared, func(s *certificate) bool { return same(s, c) })
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b Certificate) int { return a.Until.Compare(b.Until) })
	return all, nil
}

// sharedIn returns the CAs in a directory that are trusted for both clients and peers.
func sharedIn(dir string) []*certificate {
	trusted, err := trustedIn(dir)
	if err != nil {
		return nil // Inspect itself reports an unreadable file
	}
	return slices.DeleteFunc(trusted[caCert], func(c *certificate) bool {
		return !slices.ContainsFunc(trusted[peerCACert], func(p *certificate) bool { return same(p, c) })
	})
}

// quoteGlob escapes a path so that it matches only itself.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func describe(file string, c *x509.Certificate, now time.Time) Certificate {
	d := Certificate{
		File: file, What: cmp.Or(strings.Join(c.Subject.Organization, ", "), c.Subject.CommonName), Names: []string{},
		From: c.NotBefore.UTC(), Until: c.NotAfter.UTC(),
	}
	for _, ip := range c.IPAddresses {
		if !ip.IsLoopback() {
			d.Names = append(d.Names, ip.String())
		}
	}
	for _, name := range c.DNSNames {
		if name != "localhost" {
			d.Names = append(d.Names, name)
		}
	}
	left := c.NotAfter.Sub(now)
	if d.Days = int(left / day); left < 0 {
		d.Days--
	}
	return d
}
