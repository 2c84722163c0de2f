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
)

// Trusted says whom a host trusts from now on.
type Trusted struct {
	Dir         string   `json:"dir"`
	Authorities []string `json:"authorities"`
	// Fingerprints are the SHA-256 of the certificates of these, in the same order.
	Fingerprints []string `json:"fingerprints"`
	Added        []string `json:"added,omitempty"`
	Dropped      []string `json:"dropped,omitempty"`
}

// Trust puts a file of authorities in the place of a host's, in one step. It is refused when one of this host's own
// certificates is of none of them, or when none of them is trusted already: then the host would be alone. The file must
// belong to root, to who runs this, or to who became root by sudo, and nobody else may write to it.
func Trust(file, dir string, now time.Time) (Trusted, error) {
	return trust(file, dir, owners(os.Geteuid(), os.Getenv("SUDO_UID")), now)
}

// trust takes the file of any of these users.
func trust(file, dir string, users []int, now time.Time) (Trusted, error) {
	data, info, err := readBounded(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Trusted{}, mistyped("'quorumctl pki rotate' makes one; carry it here, and name it",
			"there is no %s", file)
	}
	if err != nil {
		return Trusted{}, err
	}
	if err := own(file, info, users); err != nil {
		return Trusted{}, err
	}
	if err := makeDir(dir); err != nil {
		return Trusted{}, err
	}
	before, err := readCertificates(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return Trusted{}, refused("quorumctl pki install its bundle, which brings the authorities with it",
			"this host has no certificates in %s", dir)
	}
	if err != nil {
		return Trusted{}, err
	}
	after, err := parseCertificates(file, data)
	if err != nil {
		return Trusted{}, refused("carry it here once more", "%v", err)
	}
	if err := mayTrust(dir, before, after, now); err != nil {
		return Trusted{}, err
	}
	t := Trusted{
		Dir: dir, Authorities: namesNotIn(after, nil), Added: namesNotIn(after, before),
		Dropped: namesNotIn(before, after),
	}
	for _, c := range after {
		t.Fingerprints = append(t.Fingerprints, fingerprint(c))
	}
	if sameAuthorities(before, after) {
		return t, nil
	}
	return t, replace(filepath.Join(dir, caCert), data, modeOf(caCert))
}

// mayTrust refuses what would cut this host off.
func mayTrust(dir string, before, after []*certificate, now time.Time) error {
	for _, c := range after {
		if !c.IsCA {
			return refused("take the file that 'quorumctl pki rotate' names", "%q is no authority",
				c.Subject.CommonName)
		}
		if err := inTime("the authority's certificate", c, now); err != nil {
			return err
		}
	}
	if len(namesNotIn(before, after)) == len(before) {
		return refused("take the file that 'quorumctl pki rotate' names; the old authority is dropped after the new "+
			"one is trusted everywhere", "this host trusts none of these now, so its peers would refuse it")
	}
	for _, l := range leaves() {
		own, err := readCertificates(filepath.Join(dir, l.name+".crt"))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(after, func(c *certificate) bool { return own[0].CheckSignatureFrom(c) == nil }) {
			return refused("quorumctl pki install this host's newest bundle first",
				"%s.crt of this host is of an authority that is not in it (%s)", l.name, own[0].Issuer.CommonName)
		}
	}
	return nil
}

// namesNotIn names those of the first that are not among the others.
func namesNotIn(of, others []*certificate) []string {
	var names []string
	for _, c := range of {
		if !slices.ContainsFunc(others, func(o *certificate) bool { return same(c, o) }) {
			names = append(names, c.Subject.CommonName)
		}
	}
	return names
}
