// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package pki issues the certificates of one etcd cluster, from two small CAs in a directory on the operator's machine.
//
// The peers of etcd have their own CA. Any client that etcd's peer port accepts can send raft messages, and etcd's
// authentication does not apply there: with a single CA, the port would accept the certificates of quorumd and of all
// users. etcd could check names instead (--peer-cert-allowed-cn, --peer-cert-allowed-hostname). A CA is simpler and
// safer: the same file and flag work in every etcd from 3.4 to 3.7; no certificate issued later can match a shared name
// by accident; and the client port does not accept a member's certificate, which names its host, as a user. A directory
// may also have a single CA for both; a rotation of the peers' CA separates them.
//
// It promises:
//   - Each host's keys travel only in its own bundle, and the CA keys never leave their directory.
//   - No CA, bundle or record of issued certificates is overwritten. An installation replaces only the files of an
//     earlier one on that host, with the same or a newer bundle of the same host and CAs. A rotation deletes the key of
//     the CA that it has replaced.
//   - The files on a host match each other: before it changes a file, an install checks the owner of the bundle, each
//     key against its certificate, and each certificate against its CA, its usage, its dates and this host's addresses.
//   - On a host, root owns the keys, and one group can read each of them: etcd's, or quorumd's for its own key.
//
// A bundle is a tar archive of eight files. The certificates of etcd's peer and server are valid for both server and
// client, because peers connect to each other and etcd's gateway connects to its own server. The certificate of quorumd
// is valid for a client only.
package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

const (
	// CAYears is the lifetime of a CA.
	CAYears = 10
	// LeafDays is the default lifetime of a host's certificates. An operator copies each bundle to its host, so
	// certificates that last only days would be impractical. Half a year limits the use of a stolen key, and checks
	// warn in the last month.
	LeafDays = 180
	// MaxLeafDays is the longest lifetime that may be requested.
	MaxLeafDays = 365
	// backDate is how far a host's clock may lag behind the clock of the operator's machine.
	backDate = time.Hour

	maxFile   = 64 << 10  // bytes of one file; a certificate has one or two KiB
	maxBundle = 512 << 10 // bytes of a bundle
	maxHosts  = 1000

	day = 24 * time.Hour
)

// The files of the CAs for clients and for peers, and the directory of the records of issued certificates.
const (
	caCert     = "ca.crt"
	caKey      = "ca.key"
	peerCACert = "peer-ca.crt"
	peerCAKey  = "peer-ca.key"
	issuedDir  = "issued"
)

// User is the common name in quorumd's certificate. With authentication it is quorumd's etcd user.
const User = "quorumd"

// Error is a refusal with its remedy.
type Error struct {
	Text   string // without "cannot …"
	Remedy string
	// Argument reports that an argument is invalid; otherwise the cause is on the disk.
	Argument bool
}

func (e *Error) Error() string { return e.Text }

func refused(remedy, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Remedy: remedy}
}

// mistyped returns the refusal of an invalid argument.
func mistyped(remedy, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Remedy: remedy, Argument: true}
}

// leaf describes one of the certificates that each host has.
type leaf struct {
	name   string // base name of its files
	owner  string // the program that uses it, for operators
	ca     string // the file of the CA that signs it
	usages []x509.ExtKeyUsage
	common func(host string) string
}

// leaves returns the certificates of a host. The server certificate has no common name, because etcd's gateway uses it
// as a client and would act as the user with that name.
func leaves() []leaf {
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return []leaf{
		{"server", "etcd server", caCert, both, func(string) string { return "" }},
		{"peer", "etcd peer", peerCACert, both, func(host string) string { return host }},
		{
			"client", "quorumd", caCert,
			[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			func(string) string { return User },
		},
	}
}

// readBounded reads a regular file of at most limit bytes. It follows no symbolic link and does not block on a FIFO.
func readBounded(path string, limit int64) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, nil, fmt.Errorf("%s is a symbolic link", path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d KiB", path, limit>>10)
	}
	return data, info, err
}

// create writes a new file atomically. It fails if the file exists.
func create(path string, data []byte, mode os.FileMode) error {
	temp, err := atomicfile.Stage(path, data, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}
