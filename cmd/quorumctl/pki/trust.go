// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// Trusted describes the CAs that a host trusts after a change.
type Trusted struct {
	Dir   string        `json:"dir"`
	Files []TrustedFile `json:"files"`
}

// TrustedFile describes one of the host's two CA files: for clients, and for etcd's peers.
type TrustedFile struct {
	File string   `json:"file"`
	CAs  []string `json:"cas"`
	// Fingerprints are the SHA-256 of the CAs' certificates, in the order of CAs.
	Fingerprints []string `json:"fingerprints"`
	Added        []string `json:"added,omitempty"`
	Dropped      []string `json:"dropped,omitempty"`
	// New reports that the file did not exist before. etcd reads the file only if etcd's configuration names it.
	New bool `json:"new,omitempty"`
}

// Trust replaces a host's CA files with those in a trust file, each atomically. [Directory.Begin] and [Directory.Next]
// create trust files. Trust refuses a file that would separate the host from its peers: one without the CA of this
// host's own certificates, or without any CA that the host already trusts. The file must belong to root, the current
// user, or the user who called sudo, and no other user may be able to write to it.
func Trust(file, dir string, now time.Time) (Trusted, error) {
	return trust(file, dir, owners(os.Geteuid(), os.Getenv("SUDO_UID")), now)
}

// trust is Trust with the users whose files are accepted.
func trust(file, dir string, users []int, now time.Time) (Trusted, error) {
	after, err := readTrust(file, users)
	if err != nil {
		return Trusted{}, err
	}
	if err := makeDir(dir); err != nil {
		return Trusted{}, err
	}
	before, err := trustedIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Trusted{}, refused("install its bundle, which contains the CAs: quorumctl pki install FILE",
			"this host has no certificates in %s", dir)
	}
	if err != nil {
		return Trusted{}, err
	}
	t := Trusted{Dir: dir}
	for _, name := range caFiles() {
		certs, err := parseCertificates(file, after[name])
		if err != nil {
			return Trusted{}, refused("copy it to this host again", "%v", err)
		}
		if err := mayTrust(dir, name, before[name], certs, now); err != nil {
			return Trusted{}, err
		}
		_, err = os.Lstat(filepath.Join(dir, name))
		one := TrustedFile{
			File: name, CAs: namesNotIn(certs, nil), Added: namesNotIn(certs, before[name]),
			Dropped: namesNotIn(before[name], certs), New: errors.Is(err, fs.ErrNotExist),
		}
		for _, c := range certs {
			one.Fingerprints = append(one.Fingerprints, fingerprint(c))
		}
		t.Files = append(t.Files, one)
	}
	for _, one := range t.Files {
		if len(one.Added) == 0 && len(one.Dropped) == 0 && !one.New {
			continue
		}
		if err := atomicfile.Write(filepath.Join(dir, one.File), after[one.File], modeOf(one.File), true); err != nil {
			return Trusted{}, err
		}
	}
	return t, nil
}

func readTrust(file string, users []int) (files, error) {
	data, info, err := readBounded(file, maxBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mistyped("copy it to this host; 'quorumctl pki rotate status' names the file",
			"there is no %s", file)
	}
	if err != nil {
		return nil, err
	}
	if err := checkOwner(file, info, users); err != nil {
		return nil, err
	}
	f, err := unpack(data, caFiles())
	if err != nil {
		return nil, refused("copy it to this host again; 'quorumctl pki rotate status' names the file",
			"%s contains no CAs: %v", file, err)
	}
	return f, nil
}

// mayTrust refuses a CA file that contains anything but valid CAs, or that would separate this host from its peers.
func mayTrust(dir, file string, before, after []*certificate, now time.Time) error {
	for _, c := range after {
		if !c.IsCA {
			return refused("use the file that 'quorumctl pki rotate status' names", "%q is not a CA",
				c.Subject.CommonName)
		}
		if err := inTime("the CA's certificate", c, now); err != nil {
			return err
		}
	}
	if len(namesNotIn(before, after)) == len(before) {
		return refused("use the file that 'quorumctl pki rotate status' names: every host must trust the new CA "+
			"before the old one is dropped",
			"the new %s drops every CA that this host trusts now, so this host would reject the other "+
				"hosts' certificates", file)
	}
	for _, l := range leaves() {
		if l.ca != file {
			continue
		}
		own, err := readCertificates(filepath.Join(dir, l.name+".crt"))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(after, func(c *certificate) bool { return own[0].CheckSignatureFrom(c) == nil }) {
			return refused("install this host's newest bundle first: quorumctl pki install FILE",
				"%s.crt of this host was issued by a CA that the file lacks (%s)", l.name, own[0].Issuer.CommonName)
		}
	}
	return nil
}

// trustedIn returns the CAs that a host trusts, by file. A host without a CA file for peers trusts the same CAs for
// both.
func trustedIn(dir string) (map[string][]*certificate, error) {
	clients, err := readCertificates(filepath.Join(dir, caCert))
	if err != nil {
		return nil, err
	}
	peers, err := readCertificates(filepath.Join(dir, peerCACert))
	if errors.Is(err, fs.ErrNotExist) {
		peers, err = clients, nil
	}
	return map[string][]*certificate{caCert: clients, peerCACert: peers}, err
}

// namesNotIn returns the names of the CAs in the first list that are not in the second.
func namesNotIn(of, others []*certificate) []string {
	var names []string
	for _, c := range of {
		if !slices.ContainsFunc(others, func(o *certificate) bool { return same(c, o) }) {
			names = append(names, c.Subject.CommonName)
		}
	}
	return names
}
