// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
)

// permitted are the name constraints of a CA: the names and addresses that its certificates may contain. The zero value
// permits all. Certificates without names, such as the certificates of quorumd and of etcd's users, are not affected.
type permitted struct {
	dns []string // includes subdomains
	ips []*net.IPNet
}

// newPermitted parses domains and address ranges. It adds localhost to the domains, if there are any, and the loopback
// addresses to the ranges, if there are any, because the certificates of every host contain them.
func newPermitted(texts []string) (permitted, error) {
	var p permitted
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err == nil:
			prefix = prefix.Masked()
			p.ips = append(p.ips, &net.IPNet{
				IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
			})
		case isName(text):
			p.dns = append(p.dns, text)
		default:
			return permitted{}, mistyped("pass ranges and domains, such as --permit 10.0.0.0/24,example.com",
				"%q is neither an address range nor a domain", text)
		}
	}
	if len(p.ips) > 0 {
		p.ips = append(p.ips, &net.IPNet{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
			&net.IPNet{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)})
	}
	if len(p.dns) > 0 {
		p.dns = append(p.dns, "localhost")
	}
	return p, nil
}

// constraintsOf returns the name constraints of a CA.
func constraintsOf(c *x509.Certificate) permitted {
	return permitted{c.PermittedDNSDomains, c.PermittedIPRanges}
}

func (p permitted) constrain(template *x509.Certificate) {
	template.PermittedDNSDomains, template.PermittedIPRanges = p.dns, p.ips
	template.PermittedDNSDomainsCritical = len(p.dns)+len(p.ips) > 0
}

// permits refuses a certificate with a name outside the CA's constraints, because every host would reject it.
func (s signer) permits(certPEM, keyPEM []byte, usages []x509.ExtKeyUsage) error {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.cert)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: pair.Leaf.NotBefore.Add(backDate), KeyUsages: usages,
	})
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.CANotAuthorizedForThisName {
		return refused("create CAs that permit the name or address: "+
			"quorumctl pki rotate begin --permit RANGE|DOMAIN,...",
			"the name constraints of %q exclude a name or address of the host: %s", s.cert.Subject.CommonName, e.Detail)
	}
	return err
}
