// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

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
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// signer is a CA certificate with its key.
type signer struct {
	pem  []byte // the certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// cas are the two CAs of a cluster. In a directory with a single CA, both are the same.
type cas struct{ clients, peers signer }

// of returns the CA whose certificate is in the file with that name.
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
	cas // the CAs that sign the certificates of hosts

	Days int // lifetime of the certificates of hosts; LeafDays if 0

	dir      string
	trusted  files     // the CA files of a new bundle
	rotation *rotation // the rotation in progress, or nil
}

// caNames maps the file of each CA to the prefix of its common name.
func caNames() map[string]string {
	return map[string]string{caCert: "etcd client CA of ", peerCACert: "etcd peer CA of "}
}

// newCA creates the certificate and the key of the CA for that file.
func newCA(file string, names permitted, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(now, now.AddDate(CAYears, 0, 0))
	if err != nil {
		return nil, nil, err
	}
	// Operators distinguish two CAs by the date, and programs by the key identifier.
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

// Create creates the two CAs in a directory that does not exist or is empty.
//
// Without permit, the CAs sign for any name. With domains and address ranges, they have name constraints; a host
// outside the constraints needs new CAs first, which [Directory.Begin] creates.
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
	defer func() { _ = os.RemoveAll(temp) }() // on success, temp has been renamed
	err = os.Mkdir(filepath.Join(temp, issuedDir), 0o700)
	for cert, key := range map[string]string{caCert: caKey, peerCACert: peerCAKey} {
		certPEM, keyPEM, makeErr := newCA(cert, names, now)
		err = errors.Join(err, makeErr, create(filepath.Join(temp, key), keyPEM, 0o600),
			create(filepath.Join(temp, cert), certPEM, 0o644))
	}
	if err != nil {
		return err
	}
	// rename(2) replaces only an empty directory. os.Rename refuses every existing directory.
	if err := syscall.Rename(temp, dir); err != nil {
		if _, statErr := os.Lstat(dir); statErr == nil {
			return refused("choose a different --dir; 'quorumctl pki status "+dir+"' shows what is in this one",
				"%s is not an empty directory, and nothing is overwritten", dir)
		}
		return fmt.Errorf("%s: %w", dir, err)
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// Open reads the CAs for inspection, and checks that they are valid now. If the final step of a rotation was
// interrupted, Open completes it first. It fails while another process changes the directory.
func Open(dir string, now time.Time) (*Directory, error) {
	a, done, err := open(dir, toRead, now)
	if err != nil {
		return nil, err
	}
	done()
	return a, nil
}

// OpenToChange opens the directory for [Directory.Begin], [Directory.Next], [Directory.Undo], [Directory.Host] and
// [Directory.Renew]. Until done is called or this process exits, every other attempt to open it fails.
func OpenToChange(dir string, now time.Time) (a *Directory, done func(), err error) {
	return open(dir, toChange, now)
}

// open locks the directory, reads the CAs, and keeps the lock until done is called.
func open(dir string, how int, now time.Time) (a *Directory, done func(), err error) {
	unlock, err := lock(dir, how)
	if err != nil {
		return nil, nil, err
	}
	r, err := readRotation(dir)
	if err == nil && r != nil && r.Step == stepEnding {
		if how == toRead { // completing the rotation needs the exclusive lock
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

func noCA(dir string) error {
	return refused("quorumctl pki init, or name the directory of the CAs with --dir", "there is no CA in %s", dir)
}

// read reads the CAs and applies the rotation in progress, if any.
func read(dir string, r *rotation, now time.Time) (*Directory, error) {
	if _, err := os.Lstat(filepath.Join(dir, caCert)); errors.Is(err, fs.ErrNotExist) {
		return nil, noCA(dir)
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
		if err := a.setCAs(r); err != nil {
			return nil, err
		}
	}
	return a, errors.Join(inTime("the certificate in "+caCert, a.clients.cert, now),
		inTime("the certificate in "+peerCACert, a.peers.cert, now))
}

// openSigner reads a CA certificate and its key.
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
		return signer{}, refused("chmod 0600 "+path+"; if other users had access to this machine, create new "+
			"CAs", "%s has mode %04o: anyone who can read it can issue certificates", path, mode)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return signer{}, refused("restore both from one backup", "%s and %s do not belong together: %v", cert, keyFile,
			err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return signer{}, refused("create CAs with 'quorumctl pki init'",
			"a CA in %s was not created by 'quorumctl pki'", dir)
	}
	return signer{pem: certPEM, cert: pair.Leaf, key: key}, nil
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

// inTime refuses a certificate that is not valid now. If it is not valid yet, the clock is usually wrong.
func inTime(what string, c *x509.Certificate, now time.Time) error {
	const clock = "; this machine's clock says "
	today := now.UTC().Format(time.DateTime) + "Z"
	switch {
	case now.After(c.NotAfter):
		return refused("renew it, or set the clock", "%s expired on %sZ%s%s", what,
			c.NotAfter.UTC().Format(time.DateTime), clock, today)
	case now.Before(c.NotBefore):
		return refused("set the clock of this machine, and keep it synchronized (chrony, systemd-timesyncd)",
			"%s is valid from %sZ%s%s", what, c.NotBefore.UTC().Format(time.DateTime), clock, today)
	}
	return nil
}
