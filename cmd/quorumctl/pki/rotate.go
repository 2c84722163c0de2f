// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// A cluster changes its CA in three steps: all hosts trust both CAs, all use certificates of the new CA, and all trust
// only the new CA. All hosts can connect to each other during and after each step. etcd reads its trusted CAs at
// startup, so the first and the last step need a restart of etcd on every host. Until the last step is complete, the
// rotation can be reversed: the old CA becomes the target, and the hosts continue from their current step.
const (
	stepBoth    = 1 // the hosts start to trust both CAs
	stepLeaves  = 2 // the hosts get certificates of the new CA
	stepNewOnly = 3 // the hosts stop trusting the old CA
	stepEnding  = 4 // the hosts are done; the new CA's files replace the old ones
)

// The files of a rotation, in the directory of the CAs.
const (
	rotationFile = "rotation.json"
	nextCert     = "next.crt"
	nextKey      = "next.key"
	nextPeerCert = "next-peer.crt"
	nextPeerKey  = "next-peer.key"
	retiredDir   = "retired"
	trustBoth    = "trust-both.tar"
	trustNew     = "trust-new.tar"
)

// rotation is a CA rotation in progress.
type rotation struct {
	Step  int       `json:"step"`
	Since time.Time `json:"since"`
	// Peers reports that only the CA of the peers changes.
	Peers bool `json:"peers,omitempty"`
	// Back reports that the rotation was reversed, so that it leads back to the CAs from before it began.
	Back bool `json:"back,omitempty"`

	old, next cas // the CAs that the hosts stop using, and those that replace them
}

// Rotation describes the progress of a CA rotation and what it waits for.
type Rotation struct {
	// Step is 1 while the hosts start to trust both CAs, 2 while they get certificates of the new one, 3 while they
	// stop trusting the old one, and 0 if no rotation is in progress.
	Step  int       `json:"step"`
	Since time.Time `json:"since,omitzero"`
	// Back reports that the rotation was reversed: New in CAs is then the CA from before the rotation began.
	Back bool     `json:"back,omitempty"`
	CAs  []Change `json:"cas,omitempty"` // the CAs that change
	// Trust is the file to copy to every host in this step, if any; Bundles go to one host each.
	Trust   string   `json:"trust,omitempty"`
	Bundles []string `json:"bundles,omitempty"`
	Ports   []Port   `json:"ports"`
	// Missing lists what the next step waits for, as just observed.
	Missing []string `json:"missing,omitempty"`
	// Unseen are the skipped hosts whose trusted CAs could not be observed.
	Unseen []string `json:"unseen,omitempty"`
	// Behind lists what the skipped hosts still lack for the step.
	Behind []string `json:"behind,omitempty"`
}

// Change describes one of the two CAs and its replacement.
type Change struct {
	For string `json:"for"` // clients or peers
	Old string `json:"old"` // their names
	New string `json:"new"`
	// OldFingerprint and NewFingerprint are the SHA-256 of their certificates.
	OldFingerprint string `json:"oldFingerprint"`
	NewFingerprint string `json:"newFingerprint"`
}

// changes returns the CAs that the rotation replaces.
func (r *rotation) changes() []Change {
	var all []Change
	for i, file := range caFiles() {
		if file == caCert && r.Peers {
			continue
		}
		old, next := r.old.of(file).cert, r.next.of(file).cert
		all = append(all, Change{
			For: []string{"clients", "peers"}[i], Old: old.Subject.CommonName, New: next.Subject.CommonName,
			OldFingerprint: fingerprint(old), NewFingerprint: fingerprint(next),
		})
	}
	return all
}

// readRotation returns the rotation in progress, or nil.
func readRotation(dir string) (*rotation, error) {
	path := filepath.Join(dir, rotationFile)
	data, _, err := readBounded(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &rotation{}
	if err := json.Unmarshal(data, r); err != nil || r.Step < stepBoth || r.Step > stepEnding {
		return nil, refused("restore the directory from a backup", "%s has unknown contents: step %d, %v", path,
			r.Step, err)
	}
	return r, nil
}

// write records the rotation atomically.
func (r *rotation) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, rotationFile), data, 0o600, true)
}

// setCAs sets the CAs that sign and the CAs that hosts trust in the step. Before the call, a.cas must be the CAs from
// before the rotation.
func (a *Directory) setCAs(r *rotation) (err error) {
	before := a.cas
	after := before
	if after.peers, err = openSigner(a.dir, nextPeerCert, nextPeerKey); err != nil {
		return err
	}
	if !r.Peers {
		if after.clients, err = openSigner(a.dir, nextCert, nextKey); err != nil {
			return err
		}
	}
	if r.old, r.next = before, after; r.Back {
		r.old, r.next = after, before
	}
	if a.cas = r.old; r.Step >= stepLeaves {
		a.cas = r.next
	}
	for _, file := range caFiles() {
		old, next := r.old.of(file), r.next.of(file)
		if a.trusted[file] = next.pem; r.Step < stepNewOnly && !same(old.cert, next.cert) {
			a.trusted[file] = slices.Concat(old.pem, next.pem)
		}
	}
	return nil
}

// beginning returns the CAs from before the rotation.
func (r *rotation) beginning() cas {
	if r.Back {
		return r.next
	}
	return r.old
}

// Begin creates new CAs, or a new CA only for the peers, with the name constraints of the old ones unless permit names
// others. Until the last step, bundles then contain the old and the new CAs. If a rotation is already in progress,
// Begin only writes the trust file, which may be missing after an interruption.
func (a *Directory) Begin(peersOnly bool, now time.Time, permit ...string) error {
	if a.rotation != nil {
		return a.writeTrust()
	}
	// Without a record of the step, files from an earlier attempt are not in use.
	makes := [][3]string{{peerCACert, nextPeerCert, nextPeerKey}}
	if !peersOnly {
		makes = append(makes, [3]string{caCert, nextCert, nextKey})
	}
	for _, m := range makes {
		names, err := newPermitted(permit)
		if err != nil {
			return err
		}
		if len(permit) == 0 {
			names = constraintsOf(a.of(m[0]).cert)
		}
		certPEM, keyPEM, err := newCA(m[0], names, now)
		if err != nil {
			return err
		}
		err = errors.Join(atomicfile.Write(filepath.Join(a.dir, m[2]), keyPEM, 0o600, true),
			atomicfile.Write(filepath.Join(a.dir, m[1]), certPEM, 0o644, true))
		if err != nil {
			return err
		}
	}
	r := &rotation{Step: stepBoth, Since: now.UTC().Truncate(time.Second), Peers: peersOnly}
	if err := r.write(a.dir); err != nil {
		return err
	}
	a.rotation = r
	if err := a.setCAs(r); err != nil {
		return err
	}
	return a.writeTrust()
}

// Undo reverses the rotation: its target becomes the CAs from before it began or, after an earlier reversal, the new
// CAs again. Undo need not check the hosts, because they can connect to each other in every step.
func (a *Directory) Undo(now time.Time) (Rotation, error) {
	r := a.rotation
	if r == nil {
		return Rotation{}, refused("quorumctl pki rotate begin", "no CA rotation is in progress")
	}
	a.cas = r.beginning()
	// In the first step, hosts start to trust the second CA. Reversed, this is the last step, in which they stop
	// trusting it.
	r.Step, r.Back = stepEnding-r.Step, !r.Back
	if err := r.write(a.dir); err != nil {
		return Rotation{}, err
	}
	if err := a.setCAs(r); err != nil {
		return Rotation{}, err
	}
	bundles, err := a.writeFiles(now)
	if err != nil {
		return Rotation{}, err
	}
	s, err := a.Status(nil, nil)
	s.Bundles, s.Missing = bundles, nil // no host was checked, so what is missing is unknown
	return s, err
}

// Status describes the progress of the rotation. ports is the result of [Directory.CheckTrust]; the parameter without
// lists the hosts to skip.
func (a *Directory) Status(ports []Port, without []string) (Rotation, error) {
	s := Rotation{Ports: append([]Port{}, ports...)}
	if a.rotation == nil {
		return s, nil
	}
	r := a.rotation
	s.Step, s.Since, s.Back = r.Step, r.Since, r.Back
	s.CAs, s.Trust = r.changes(), a.trustFile()
	hosts, err := a.Hosts()
	if err != nil {
		return s, err
	}
	s.Missing = missing(r.Step, hosts, ports, without)
	s.Unseen, s.Behind = leftOut(r.Step, ports, without)
	return s, nil
}

// Next begins the next step if the current step is complete. If files of the current step do not exist yet, it creates
// them; if that includes bundles, it does not begin the next step. A refusal lists what is missing.
func (a *Directory) Next(ports []Port, without []string, now time.Time) (Rotation, error) {
	r := a.rotation
	if r == nil {
		return Rotation{}, refused("quorumctl pki rotate begin", "no CA rotation is in progress")
	}
	bundles, err := a.writeFiles(now)
	if err != nil {
		return Rotation{}, err
	}
	s, err := a.Status(ports, without)
	if s.Bundles = bundles; err != nil {
		return s, err
	}
	if len(bundles) > 0 { // the bundles are new, so no host can have installed them
		return s, nil
	}
	if len(s.Missing) > 0 {
		return s, refused(a.remedy(), "step %d of 3 is not done: %s", r.Step, sum(s.Missing))
	}
	r.Step++
	if err := r.write(a.dir); err != nil {
		return s, err
	}
	if r.Step == stepEnding {
		a.rotation, a.cas = nil, r.next
		a.trusted = files{caCert: a.clients.pem, peerCACert: a.peers.pem}
		s.Step, s.Since, s.Trust = 0, time.Time{}, ""
		return s, r.end(a.dir)
	}
	a.cas = r.beginning()
	if err := a.setCAs(r); err != nil {
		return s, err
	}
	if bundles, err = a.writeFiles(now); err != nil {
		return s, err
	}
	s, err = a.Status(ports, without)
	s.Bundles = bundles
	return s, err
}

// writeFiles creates the missing files of this step: the trust file, or a bundle for each host whose newest
// certificates are not all from the CAs that sign now.
func (a *Directory) writeFiles(now time.Time) (bundles []string, err error) {
	if a.trustFile() != "" {
		return nil, a.writeTrust()
	}
	hosts, err := a.Hosts()
	if err != nil {
		return nil, err
	}
	for _, name := range hosts {
		newest, err := a.newestOf(name)
		if err != nil {
			return bundles, err
		}
		signed := func(i int, l leaf) bool {
			return i < len(newest) && newest[i].CheckSignatureFrom(a.of(l.ca).cert) == nil
		}
		if all := leaves(); signed(0, all[0]) && signed(1, all[1]) && signed(2, all[2]) {
			continue
		}
		bundle, err := a.Renew(name, nil, now)
		if err != nil {
			return bundles, err
		}
		bundles = append(bundles, bundle)
	}
	return bundles, nil
}

// trustFile returns the path of the trust file that the operator copies to the hosts in this step, or "".
func (a *Directory) trustFile() string {
	switch a.rotation.Step {
	case stepBoth:
		return filepath.Join(a.dir, trustBoth)
	case stepNewOnly:
		return filepath.Join(a.dir, trustNew)
	}
	return ""
}

// writeTrust writes the trust file, if this step has one.
func (a *Directory) writeTrust() error {
	path := a.trustFile()
	if path == "" {
		return nil
	}
	packed, err := a.trusted.pack(caFiles(), a.rotation.Since)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, packed, 0o644, true)
}

// end replaces the old CA's files with those of the new one. It keeps the old certificate, to identify the certificates
// that the old CA signed. It removes the old key: no host needs it any longer, and a skipped host may still accept
// certificates of that CA. After a reversed rotation, the files from before it began stay. If end is interrupted, the
// next call completes the rest.
func (r *rotation) end(dir string) error {
	aside := filepath.Join(dir, retiredDir)
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, names := range [][2]string{
		{nextKey, caKey}, {nextCert, caCert}, {nextPeerKey, peerCAKey}, {nextPeerCert, peerCACert},
	} {
		if err := r.take(dir, aside, names[0], names[1]); err != nil {
			return err
		}
	}
	if err := errors.Join(atomicfile.SyncDir(aside), atomicfile.SyncDir(dir)); err != nil {
		return err
	}
	// remove the record of the rotation last, so that an interrupted call can be repeated
	for _, name := range []string{trustBoth, trustNew, rotationFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return atomicfile.SyncDir(dir)
}

// take replaces one file of the old CA with the new CA's file, or removes the new file if the rotation was reversed.
func (r *rotation) take(dir, aside, next, old string) error {
	from, to := filepath.Join(dir, next), filepath.Join(dir, old)
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil // an earlier call has replaced it, or this CA does not change
	}
	gone := to
	if r.Back {
		gone = from
	}
	if strings.HasSuffix(old, ".crt") {
		kept := filepath.Join(aside, r.Since.UTC().Format(stampLayout)+"-"+old)
		err := os.Link(gone, kept)
		// A shared CA has no file for the peers.
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.Back {
		return os.Remove(from)
	}
	return os.Rename(from, to)
}

// remedy returns the commands that complete the current step.
func (a *Directory) remedy() string {
	const again = "; then repeat this command. To skip a host that is gone or runs no etcd: --without NAME"
	restart := "on one of them: quorumctl rollout start restart --reason 'new CA'"
	switch a.rotation.Step {
	case stepBoth:
		return "on every host: quorumctl pki trust " + trustBoth + "; then " + restart + again
	case stepNewOnly:
		return "on every host: quorumctl pki trust " + trustNew + "; then " + restart + again
	}
	return "on every host named: quorumctl pki install FILE, with its newest bundle" + again
}

// sum joins the first few texts and counts the rest.
func sum(all []string) string {
	const named = 3
	text := strings.Join(all[:min(len(all), named)], "; ")
	if more := len(all) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
