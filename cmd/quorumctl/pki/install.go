// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// Place describes the target of an installation.
type Place struct {
	Dir string
	// Etcd and Quorumd are the IDs of the groups that may read etcd's keys and quorumd's key. If negative, only the
	// installing user may read them.
	Etcd, Quorumd int
	// Addresses are the addresses of this host. A bundle with addresses must contain one of them. Empty: not checked.
	Addresses []netip.Addr
	// Fingerprints are the SHA-256 of the CAs that a bundle may contain, as 'pki init' prints them. Empty: any.
	Fingerprints []string
}

// Installed describes what was installed.
type Installed struct {
	Host    string    `json:"host"`
	Dir     string    `json:"dir"`
	Until   time.Time `json:"until"`
	Renewed bool      `json:"renewed"` // the bundle replaced older certificates
	CAs     []CA      `json:"cas"`     // the CAs in the bundle
}

// CA identifies a CA in a directory or bundle.
type CA struct {
	File        string `json:"file"`
	Name        string `json:"name"`
	Fingerprint string `json:"fingerprint"` // SHA-256 of its certificate
}

// cas returns the CAs in a bundle.
func (f files) cas() (all []CA) {
	for _, file := range caFiles() {
		certs, _ := parseCertificates(file, f[file]) // check reports an invalid file
		for _, c := range certs {
			all = append(all, CA{file, c.Subject.CommonName, fingerprint(c)})
		}
	}
	return all
}

// CAs returns the CAs of an opened directory that currently sign certificates.
func (a *Directory) CAs() []CA { return files{caCert: a.clients.pem, peerCACert: a.peers.pem}.cas() }

// mayTrust refuses a bundle with a CA that is not in Fingerprints, unless Fingerprints is empty.
func (p Place) mayTrust(cas []CA) error {
	plain := strings.NewReplacer(":", "", " ", "")
	for _, ca := range cas {
		if len(p.Fingerprints) > 0 && !slices.ContainsFunc(p.Fingerprints, func(given string) bool {
			return strings.EqualFold(plain.Replace(given), plain.Replace(ca.Fingerprint))
		}) {
			return refused("compare it with 'openssl x509 -noout -fingerprint -sha256 -in "+ca.File+"' in "+
				"the directory of the CAs; if it differs there, do not install this bundle",
				"%s of the bundle (%s) has the fingerprint %s, which --fingerprint does not list",
				ca.File, ca.Name, ca.Fingerprint)
		}
	}
	return nil
}

// Install checks a bundle and installs its files, each atomically. It replaces only files of the same host and CAs, and
// none that are newer than the bundle. It does not change an existing CA file, because the operator may have added a
// CA.
//
// The bundle must belong to root, the current user, or the user who called sudo.
func Install(bundle string, p Place, now time.Time) (Installed, error) {
	return install(bundle, p, owners(os.Geteuid(), os.Getenv("SUDO_UID")), now)
}

// install is Install with the users whose files are accepted.
func install(bundle string, p Place, users []int, now time.Time) (Installed, error) {
	f, err := readBundle(bundle, users)
	if err != nil {
		return Installed{}, err
	}
	h, err := f.check(now)
	if err != nil {
		return Installed{}, err
	}
	if err := h.isHere(p.Addresses); err != nil {
		return Installed{}, err
	}
	done := Installed{Host: h.name, Dir: p.Dir, Until: h.server.NotAfter, CAs: f.cas()}
	if err := p.mayTrust(done.CAs); err != nil {
		return Installed{}, err
	}
	if err := makeDir(p.Dir); err != nil {
		return Installed{}, err
	}
	if done.Renewed, err = mayReplace(p.Dir, h); err != nil {
		return Installed{}, err
	}
	names := slices.DeleteFunc(fileNames(), func(name string) bool {
		_, err := os.Lstat(filepath.Join(p.Dir, name))
		return err == nil && slices.Contains(caFiles(), name)
	})
	return done, f.put(names, p)
}

// isHere refuses a bundle that has addresses, but none of this host. It does not check a bundle with names only.
func (h host) isHere(addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return nil
	}
	var foreign []string
	for _, raw := range h.peer.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		ip = ip.Unmap()
		switch {
		case !ok || ip.IsLoopback():
		case slices.Contains(addresses, ip):
			return nil
		default:
			foreign = append(foreign, ip.String())
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return refused("install it on "+h.name+"; if this host is "+h.name+" behind NAT, add --any-address",
		"the bundle is for %s at %s, but this host has no such address", h.name,
		strings.Join(foreign, ", "))
}

// makeDir creates the directory. It refuses an existing one that belongs to a different user or that other users can
// write to.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return refused("chown root: "+dir+" && chmod 0755 "+dir,
			"%s must be a directory that belongs to you and that no other user can write to (mode %04o)", dir,
			info.Mode().Perm())
	}
	return nil
}

// mayReplace checks the installed files and reports whether the bundle replaces them.
func mayReplace(dir string, h host) (bool, error) {
	byHand := "to install this bundle anyway, move the files in " + dir + " away first"
	before, err := trustedIn(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// The CA files do not change, so their CAs must have signed the new certificates.
	for file, leaf := range map[string]*certificate{caCert: h.server, peerCACert: h.peer} {
		signs := func(c *certificate) bool { return leaf.CheckSignatureFrom(c) == nil }
		if !slices.ContainsFunc(before[file], signs) {
			return false, refused("create the bundle with the cluster's CAs; during a rotation, run 'quorumctl pki "+
				"trust' and restart etcd first; "+byHand,
				"this host trusts a different CA (%s in %s), and the other hosts would refuse this "+
					"bundle's certificates",
				before[file][0].Subject.CommonName, file)
		}
	}
	peer, err := readCertificates(filepath.Join(dir, "peer.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // an earlier installation was interrupted
	}
	if err != nil {
		return false, err
	}
	if name := peer[0].Subject.CommonName; name != h.name {
		return false, refused("install the bundle of "+name+"; "+byHand, "this host has the certificates of %s, "+
			"but the bundle is for %s", name, h.name)
	}
	if peer[0].NotBefore.After(h.peer.NotBefore) {
		return false, refused("install the newest bundle of "+h.name+"; "+byHand,
			"the bundle is older than the certificates of this host")
	}
	return !same(peer[0], h.peer), nil
}

// put writes the files. A program that reads a pair while put renames them may get a key that does not match the
// certificate, and has to retry.
func (f files) put(names []string, p Place) error {
	staged := map[string]string{}
	defer func() {
		for _, temp := range staged {
			os.Remove(temp)
		}
	}()
	for _, name := range names {
		mode, group := modeOf(name), -1
		if strings.HasSuffix(name, ".key") {
			if group = p.Etcd; name == "client.key" {
				group = p.Quorumd
			}
			if group >= 0 {
				mode = 0o640
			}
		}
		temp, err := atomicfile.Stage(filepath.Join(p.Dir, name), f[name], 0o600)
		if err != nil {
			return err
		}
		staged[name] = temp
		if group >= 0 {
			if err := os.Chown(temp, 0, group); err != nil {
				return err
			}
		}
		// after the change of group, so that no other group can ever read the file
		if err := os.Chmod(temp, mode); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(staged[name], filepath.Join(p.Dir, name)); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(p.Dir)
}
