// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// signer is a certificate of an authority with its key.
type signer struct {
	pem  []byte // the certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// cas are the two CAs of a cluster. In a directory that was made before they were separated, both are the same.
type cas struct{ clients, peers signer }

// of returns the CA with that file.
func (c cas) of(file string) signer {
	if file == peerCACert {
		return c.peers
	}
	return c.clients
}

// Shared reports whether one CA signs for clients and for peers.
func (c cas) Shared() bool { return same(c.clients.cert, c.peers.cert) }

// Directory is the opened directory of a cluster's CAs.
type Directory struct {
	cas // sign the certificates of hosts

	Days int // for how long the certificates of hosts are good; LeafDays if 0

	dir      string
	trusted  files     // what the hosts trust from this step on: the files of CAs in a bundle
	rotation *rotation // the change to another CA that is in progress, or nil
}

// caNames are the beginnings of their common names.
func caNames() map[string]string {
	return map[string]string{caCert: "etcd client CA of ", peerCACert: "etcd peer CA of "}
}

// newCA makes the certificate and the key of the CA with that file.
func newCA(file string, names permitted, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(now, now.AddDate(AuthorityYears, 0, 0))
	if err != nil {
		return nil, nil, err
	}
	// Operators tell two CAs apart by the date, machines by the key's identifier.
	template.Subject = pkix.Name{CommonName: caNames()[file] + now.UTC().Format(time.DateTime)}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	names.constrain(template)
	if certPEM, err = sign(template, template, &key.PublicKey, key); err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return certPEM, keyPEM, err
}

// Create makes an authority in a directory that is not there, or is empty.
//
// Without permit it signs for any name. With domains and address ranges it has name constraints: a host elsewhere needs
// another CA first, which [Authority.Begin] makes.
func Create(dir string, now time.Time, permit ...string) error {
	names, err := newPermitted(permit)
	if err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".quorumd-pki-") // mode 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // it is gone, where all went well
	err = os.Mkdir(filepath.Join(temp, issuedDir), 0o700)
	for cert, key := range map[string]string{caCert: caKey, peerCACert: peerCAKey} {
		certPEM, keyPEM, makeErr := newCA(cert, names, now)
		err = errors.Join(err, makeErr, create(filepath.Join(temp, key), keyPEM, 0o600),
			create(filepath.Join(temp, cert), certPEM, 0o644))
	}
	if err != nil {
		return err
	}
	// rename(2) puts a directory in the place of an empty one only; Go's asks first, and refuses any.
	if err := syscall.Rename(temp, dir); err != nil {
		if _, statErr := os.Lstat(dir); statErr == nil {
			return refused("choose another with --dir; 'quorumctl pki status' shows what it holds",
				"there is something in %s already, and nothing is overwritten", dir)
		}
		return fmt.Errorf("%s: %w", dir, err)
	}
	return syncDir(filepath.Dir(dir))
}

// Open reads an authority, to look at it, and sees whether it can sign today. A change to another authority that was
// cut short while it ended is ended first. It is refused while another process changes the authority.
func Open(dir string, now time.Time) (*Directory, error) {
	a, done, err := open(dir, toRead, now)
	if err != nil {
		return nil, err
	}
	done()
	return a, nil
}

// OpenToChange opens an authority for [Authority.Begin], [Authority.Next], [Authority.Host] and [Authority.Renew].
// Until done is called or this process ends, whoever else opens it is refused.
func OpenToChange(dir string, now time.Time) (a *Directory, done func(), err error) {
	return open(dir, toChange, now)
}

// open locks the directory of an authority, reads it, and keeps the lock until done is called.
func open(dir string, how int, now time.Time) (a *Directory, done func(), err error) {
	unlock, err := lock(dir, how)
	if err != nil {
		return nil, nil, err
	}
	r, err := readRotation(dir)
	if err == nil && r != nil && r.Step == stepEnding {
		if how == toRead { // to end it is a change
			unlock()
			return open(dir, toChange, now)
		}
		r, err = nil, r.end(dir)
	}
	if err == nil {
		a, err = read(dir, r, now)
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return a, unlock, nil
}

func noAuthority(dir string) error {
	return refused("quorumctl pki init; or name its directory with --dir", "there is no authority in %s", dir)
}

// read gives an authority and the change to another one that is under way in it, if one is.
func read(dir string, r *rotation, now time.Time) (*Directory, error) {
	if _, err := os.Lstat(filepath.Join(dir, caCert)); errors.Is(err, fs.ErrNotExist) {
		return nil, noAuthority(dir)
	}
	clients, err := openSigner(dir, caCert, caKey)
	if err != nil {
		return nil, err
	}
	a := &Directory{cas: cas{clients, clients}, dir: dir, rotation: r}
	if _, err := os.Lstat(filepath.Join(dir, peerCACert)); err == nil {
		if a.peers, err = openSigner(dir, peerCACert, peerCAKey); err != nil {
			return nil, err
		}
	}
	a.trusted = files{caCert: a.clients.pem, peerCACert: a.peers.pem}
	if r != nil {
		if err := a.takeUp(r); err != nil {
			return nil, err
		}
	}
	return a, errors.Join(inTime("the certificate in "+caCert, a.clients.cert, now),
		inTime("the certificate in "+peerCACert, a.peers.cert, now))
}

// openSigner reads a certificate of an authority and its key.
func openSigner(dir, cert, keyFile string) (signer, error) {
	certPEM, _, err := readBounded(filepath.Join(dir, cert), maxFile)
	if err != nil {
		return signer{}, err
	}
	path := filepath.Join(dir, keyFile)
	keyPEM, info, err := readBounded(path, maxFile)
	if err != nil {
		return signer{}, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return signer{}, refused("chmod 0600 "+path+"; if anybody else was on this machine meanwhile, make a new "+
			"authority", "%s has mode %04o, and whoever reads it may make certificates for anybody", path, mode)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return signer{}, refused("restore both from one backup", "%s and %s do not belong together: %v", cert, keyFile,
			err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return signer{}, refused("make one with 'quorumctl pki init'", "the key in %s is no authority's of this kind",
			dir)
	}
	return signer{pem: certPEM, cert: pair.Leaf, key: key}, nil
}

// issue makes the certificates of a host, and gives the files of its bundle.
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

func newTemplate(now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-backDate), NotAfter: end}, nil
}

func sign(template, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// inTime refuses a certificate that is not good now. One that is not good yet usually means that the clock is off.
func inTime(what string, c *x509.Certificate, now time.Time) error {
	const clock = "; this machine's clock says "
	today := now.UTC().Format(time.DateTime) + "Z"
	switch {
	case now.After(c.NotAfter):
		return refused("renew it, or set the clock", "%s expired on %sZ%s%s", what,
			c.NotAfter.UTC().Format(time.DateTime), clock, today)
	case now.Before(c.NotBefore):
		return refused("set the clock of this machine, and let it be kept (chrony, systemd-timesyncd)",
			"%s is good from %sZ%s%s", what, c.NotBefore.UTC().Format(time.DateTime), clock, today)
	}
	return nil
}
