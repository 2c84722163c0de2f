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

// Certificate is one that was found, as people want to see it.
type Certificate struct {
	File  string    `json:"file"` // without its directory
	What  string    `json:"what"` // whose, and what it is for
	Names []string  `json:"names"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Days  int       `json:"days"` // left, rounded down; below zero once it has expired
	// Shared reports a CA that is trusted at both ports of etcd: each client's certificate opens the peer port.
	Shared bool `json:"shared,omitempty"`
}

// Inspect gives the certificates in a directory, those that end first before the others: of an authority its own and
// the newest of each host, in any other all that lie in files ending in .crt.
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
		const remedy = "'pki init' makes an authority, and 'pki install' puts a host's certificates in place"
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
		return nil, refused("name the directory of an authority, or of a host's certificates", "%s has %d certificates",
			dir, len(paths))
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

// sharedIn returns the CAs that a directory has for clients and for peers alike, none if it has no CAs.
func sharedIn(dir string) []*certificate {
	trusted, err := trustedIn(dir)
	if err != nil {
		return nil // that is said of the file itself
	}
	return slices.DeleteFunc(trusted[caCert], func(c *certificate) bool {
		return !slices.ContainsFunc(trusted[peerCACert], func(p *certificate) bool { return same(p, c) })
	})
}

// quoteGlob makes a path match itself alone.
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
