// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// CertFiles names the files of one party. The certificate is valid for both server and client authentication, as etcd
// requires for peers.
type CertFiles struct {
	CA   string // the CA that this party trusts
	Cert string
	Key  string
}

// ClientConfig returns the TLS configuration of a client with these files.
func (f CertFiles) ClientConfig() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot load the certificate: %w", err)
	}
	authority, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot load the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("cannot load the CA: no certificate in %s", f.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// LiveConfig returns the TLS configuration of a client that reads the files again for each connection. The client
// therefore survives a change of its certificate or of its trusted CA.
func (f CertFiles) LiveConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			now, err := f.ClientConfig()
			if err != nil {
				return nil, err
			}
			return &now.Certificates[0], nil
		},
		InsecureSkipVerify: true, // VerifyConnection verifies the server instead, with the current CAs
		VerifyConnection: func(s tls.ConnectionState) error {
			now, err := f.ClientConfig()
			if err != nil {
				return err
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{
				DNSName: s.ServerName, Roots: now.RootCAs, Intermediates: between,
			})
			return err
		},
	}
}

// CertOptions describe how a certificate differs from the default, which is valid for 127.0.0.1 to 127.0.0.9 and
// localhost, from an hour ago until tomorrow.
type CertOptions struct {
	IPs      []net.IP // replace the default addresses and localhost
	NotAfter time.Time
}

// CA is a certificate authority whose key is in memory; the certificates that it issues are files.
type CA struct {
	File string // path of the CA's own certificate
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA creates a CA that writes to dir. Its own certificate is ca.crt there.
func NewCA(dir string) (*CA, error) {
	ca := &CA{File: filepath.Join(dir, "ca.crt"), dir: dir}
	template, err := newTemplate("testbed CA", time.Now().Add(24*time.Hour))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	if ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("cannot create a CA: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &ca.key.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("cannot create a CA: %w", err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("cannot create a CA: %w", err)
	}
	return ca, writePEM(ca.File, "CERTIFICATE", der)
}

// Issue writes NAME.crt and NAME.key. It replaces existing files, so a second call with the same name is a renewal.
func (ca *CA) Issue(name string, o CertOptions) (CertFiles, error) {
	files := CertFiles{CA: ca.File, Cert: filepath.Join(ca.dir, name+".crt"), Key: filepath.Join(ca.dir, name+".key")}
	if o.NotAfter.IsZero() {
		o.NotAfter = time.Now().Add(24 * time.Hour)
	}
	template, err := newTemplate(name, o.NotAfter)
	if err != nil {
		return CertFiles{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = o.IPs
	if o.IPs == nil {
		template.DNSNames = []string{"localhost"}
		for host := range byte(9) {
			template.IPAddresses = append(template.IPAddresses, net.IPv4(127, 0, 0, host+1))
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return CertFiles{}, fmt.Errorf("cannot issue a certificate for %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return CertFiles{}, fmt.Errorf("cannot issue a certificate for %s: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return CertFiles{}, fmt.Errorf("cannot issue a certificate for %s: %w", name, err)
	}
	return files, errors.Join(writePEM(files.Cert, "CERTIFICATE", der), writePEM(files.Key, "PRIVATE KEY", keyDER))
}

// Expired issues a certificate that expired a minute ago.
func (ca *CA) Expired(name string) (CertFiles, error) {
	return ca.Issue(name, CertOptions{NotAfter: time.Now().Add(-time.Minute)})
}

// WrongSAN issues a certificate for an address that the tests do not use.
func (ca *CA) WrongSAN(name string) (CertFiles, error) {
	// 192.0.2.1 is reserved for documentation (RFC 5737)
	return ca.Issue(name, CertOptions{IPs: []net.IP{net.IPv4(192, 0, 2, 1)}})
}

// WrongCA issues a certificate from a new CA that no other party trusts. The party that uses the certificate trusts ca.
func (ca *CA) WrongCA(name string) (CertFiles, error) {
	dir := filepath.Join(ca.dir, name+"-authority")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return CertFiles{}, fmt.Errorf("cannot create a CA: %w", err)
	}
	stranger, err := NewCA(dir)
	if err != nil {
		return CertFiles{}, err
	}
	files, err := stranger.Issue(name, CertOptions{})
	files.CA = ca.File
	return files, err
}

func newTemplate(name string, notAfter time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot create a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     notAfter,
	}, nil
}

// writePEM replaces the file atomically, so that a reader sees either the old or the new one.
func writePEM(path, kind string, der []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
