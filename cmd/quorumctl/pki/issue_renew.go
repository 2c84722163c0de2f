// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stampLayout is the layout of the time of issue in names of records and bundles, in UTC.
const stampLayout = "20060102T150405Z"

// sans are the subject alternative names of a host.
type sans struct {
	dns []string
	ips []net.IP
}

// isName reports whether s is a DNS name of at most 64 bytes, the limit of a common name.
func isName(s string) bool {
	label := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
	return s != "" && len(s) <= 64 && !slices.ContainsFunc(strings.Split(s, "."), func(part string) bool {
		return len(part) > 63 || !label.MatchString(part)
	})
}

// namesOf returns the names for a host's certificates: its name, the given addresses, and localhost.
func namesOf(host string, addresses []string) (sans, error) {
	if !isName(host) {
		return sans{}, mistyped("use letters, digits, '-' and '.', such as n1", "%q cannot be the name of a host", host)
	}
	if slices.ContainsFunc([]string{"root", User}, func(user string) bool { return strings.EqualFold(user, host) }) {
		return sans{}, mistyped(
			"use a different host name, such as n1",
			"%q cannot be a host name: etcd would map its certificate to "+
				"the user of that name",
			host,
		)
	}
	if len(addresses) == 0 {
		return sans{}, mistyped("quorumctl pki host "+host+" 10.0.0.1", "no address is given for %s", host)
	}
	s := sans{dns: []string{host, "localhost"}, ips: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	for _, text := range addresses {
		ip, err := netip.ParseAddr(text)
		numbers := strings.Trim(text, "0123456789.") == "" // only digits and dots: a mistyped address, not a name
		switch {
		case err == nil && (ip.IsUnspecified() || ip.IsMulticast() || ip.Zone() != ""):
			return sans{}, mistyped("give the address at which the other hosts reach "+host,
				"%s is not a host address", text)
		case err == nil:
			if as := net.IP(ip.Unmap().AsSlice()); !slices.ContainsFunc(s.ips, as.Equal) {
				s.ips = append(s.ips, as)
			}
		case isName(text) && !numbers:
			if !slices.Contains(s.dns, text) {
				s.dns = append(s.dns, text)
			}
		default:
			return sans{}, mistyped("give addresses and names without a port or a scheme: 10.0.0.1, n1.example.com",
				"%q is neither an address nor a name", text)
		}
	}
	return s, nil
}

// Host creates the first certificates of a host and returns the path of its bundle.
func (a *Directory) Host(name string, addresses []string, now time.Time) (string, error) {
	names, err := namesOf(name, addresses)
	if err != nil {
		return "", err
	}
	known, err := a.Hosts()
	if err != nil {
		return "", err
	}
	if slices.Contains(known, name) {
		return "", refused("quorumctl pki renew "+name+"; for other addresses, add them after the name",
			"%s has certificates already", name)
	}
	if len(known) >= maxHosts {
		return "", refused("create another CA directory", "there are already %d hosts", len(known))
	}
	return a.issueBundle(name, names, name+".tar", now)
}

// Renew creates new certificates with new keys for a host that already has certificates. They contain the same names
// unless addresses are passed.
func (a *Directory) Renew(name string, addresses []string, now time.Time) (string, error) {
	old, err := a.newest(name)
	if err != nil {
		return "", err
	}
	names := sans{old.DNSNames, old.IPAddresses}
	if len(addresses) > 0 {
		if names, err = namesOf(name, addresses); err != nil {
			return "", err
		}
	}
	return a.issueBundle(name, names, name+"-"+now.UTC().Format(stampLayout)+".tar", now)
}

// issueBundle issues the certificates, and writes the bundle before the record. In the opposite order, an interruption
// would leave a record of a host without keys.
func (a *Directory) issueBundle(name string, names sans, bundle string, now time.Time) (string, error) {
	if a.Days < 0 || a.Days > MaxLeafDays {
		return "", mistyped(fmt.Sprintf("pass --days 1 to %d", MaxLeafDays), "certificates cannot be valid for %d days",
			a.Days)
	}
	path := filepath.Join(a.dir, bundle)
	record := filepath.Join(a.dir, issuedDir, name+"-"+now.UTC().Format(stampLayout)+".crt")
	if _, err := os.Lstat(record); err == nil {
		return "", refused("run the command again", "certificates of %s were already created in this second", name)
	}
	made, err := a.issue(name, names, now)
	if err != nil {
		return "", err
	}
	packed, err := made.pack(fileNames(), now)
	if err != nil {
		return "", err
	}
	for _, f := range []struct {
		path string
		data []byte
	}{{path, packed}, {record, slices.Concat(made["server.crt"], made["peer.crt"], made["client.crt"])}} {
		if err := create(f.path, f.data, 0o600); errors.Is(err, fs.ErrExist) {
			return "", refused("copy it to "+name+" or remove it, then run the command again",
				"%s already exists, and nothing is overwritten", f.path)
		} else if err != nil {
			return "", err
		}
	}
	return path, nil
}

// Hosts returns the names of the hosts that have certificates, sorted.
func (a *Directory) Hosts() ([]string, error) { return HostsIn(a.dir) }

// HostsIn returns the names of the hosts that have certificates from the CAs in a directory, sorted. It only reads the
// directory and takes no lock.
func HostsIn(dir string) ([]string, error) {
	newest, err := records(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range newest {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// newest returns a host's newest server certificate, which contains its addresses.
func (a *Directory) newest(name string) (*x509.Certificate, error) {
	all, err := a.newestOf(name)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// newestOf returns a host's newest certificates, in the order of leaves.
func (a *Directory) newestOf(name string) ([]*x509.Certificate, error) {
	all, err := records(a.dir)
	if err != nil {
		return nil, err
	}
	path, ok := all[name]
	if !ok {
		return nil, mistyped("quorumctl pki host "+name+" ADDRESS...", "%q has no certificates from these CAs",
			name)
	}
	return readCertificates(path)
}

// records returns the path of each host's newest record.
func records(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, issuedDir)) // sorted by name, so a host's newest comes last
	if err != nil {
		return nil, err
	}
	newest := map[string]string{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".crt")
		at := len(stem) - len(stampLayout) - 1
		if !ok || at < 1 || stem[at] != '-' || !isName(stem[:at]) {
			continue
		}
		if _, err := time.Parse(stampLayout, stem[at+1:]); err == nil {
			newest[stem[:at]] = filepath.Join(dir, issuedDir, e.Name())
		}
	}
	return newest, nil
}

// readCertificates reads a file with at least one certificate.
func readCertificates(path string) ([]*x509.Certificate, error) {
	data, _, err := readBounded(path, maxFile)
	if err != nil {
		return nil, err
	}
	return parseCertificates(path, data)
}

func parseCertificates(name string, data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s has a damaged certificate: %w", name, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("%s contains no certificate", name)
	}
	return certs, nil
}

// same reports whether two certificates are identical.
func same(a, b *x509.Certificate) bool { return bytes.Equal(a.Raw, b.Raw) }

// issue creates the certificates of a host and returns the files of its bundle.
func (a *Directory) issue(host string, names sans, now time.Time) (files, error) {
	out := maps.Clone(a.trusted)
	for _, l := range leaves() {
		ca, end := a.of(l.ca), now.Add(time.Duration(cmp.Or(a.Days, LeafDays))*day)
		if end.After(ca.cert.NotAfter) { // no leaf outlives its CA
			end = ca.cert.NotAfter
		}
		template, err := newTemplate(now, end)
		if err != nil {
			return nil, err
		}
		template.Subject = pkix.Name{Organization: []string{l.owner + " of " + host}, CommonName: l.common(host)}
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, l.usages
		if slices.Contains(l.usages, x509.ExtKeyUsageServerAuth) {
			template.DNSNames, template.IPAddresses = names.dns, names.ips
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if out[l.name+".crt"], err = sign(template, ca.cert, &key.PublicKey, ca.key); err != nil {
			return nil, err
		}
		if out[l.name+".key"], err = encodeKey(key); err != nil {
			return nil, err
		}
		if err := ca.permits(out[l.name+".crt"], out[l.name+".key"], l.usages); err != nil {
			return nil, err
		}
	}
	return out, nil
}
