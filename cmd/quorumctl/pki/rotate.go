// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A cluster changes to another authority in three steps, each of which leaves every host able to speak to every other:
// all trust both, all show certificates of the new one, all trust the new one alone. etcd reads whom it trusts when it
// starts, so the first and the last are a restart of each host.
const (
	stepBoth    = 1 // the hosts come to trust both
	stepLeaves  = 2 // the hosts get certificates of the new one
	stepNewOnly = 3 // the hosts cease to trust the old one
	stepEnding  = 4 // all is done: the files of the new one take the place of those of the old one
)

// The files of a change, in the directory of the authority.
const (
	rotationFile = "rotation.json"
	nextCert     = "next.crt"
	nextKey      = "next.key"
	retiredDir   = "retired"
	trustBoth    = "trust-both.pem"
	trustNew     = "trust-new.pem"
)

// rotation is a change to another authority that is under way.
type rotation struct {
	Step  int       `json:"step"`
	Since time.Time `json:"since"`

	old, next signer
}

// Rotation says how far the change to another authority is, and what it waits for.
type Rotation struct {
	// Step is 1 while the hosts come to trust both authorities, 2 while they get certificates of the new one, 3 while
	// they cease to trust the old one, and 0 when no change is under way.
	Step  int       `json:"step"`
	Since time.Time `json:"since,omitzero"`
	Old   string    `json:"old,omitempty"` // the names of the authorities
	New   string    `json:"new,omitempty"`
	// OldFingerprint and NewFingerprint are the SHA-256 of their certificates.
	OldFingerprint string `json:"oldFingerprint,omitempty"`
	NewFingerprint string `json:"newFingerprint,omitempty"`
	// Trust is the file that goes to every host in this step, if one does; Bundles go to one host each.
	Trust   string   `json:"trust,omitempty"`
	Bundles []string `json:"bundles,omitempty"`
	Ports   []Port   `json:"ports"`
	// Missing is what the next step waits for, as it was just seen.
	Missing []string `json:"missing,omitempty"`
	// Unseen are hosts that were left out and of which nobody has seen whom they trust.
	Unseen []string `json:"unseen,omitempty"`
	// Behind is what was seen of hosts that were left out, and is not as the step wants it.
	Behind []string `json:"behind,omitempty"`
}

// readRotation gives the change that is under way, or nil.
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
		return nil, refused("restore the directory from a backup", "%s says nothing that is known: step %d, %v", path,
			r.Step, err)
	}
	return r, nil
}

// write records the step; what is there gives way in one move.
func (r *rotation) write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, rotationFile), data, 0o600)
}

// replace writes a file in the place of the one that is there.
func replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := stage(path, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// takeUp makes an authority sign and trust what the step asks for.
func (a *Authority) takeUp(r *rotation) (err error) {
	r.old = a.signer
	if r.next, err = openSigner(a.dir, nextCert, nextKey); err != nil {
		return err
	}
	a.trusted = slices.Concat(r.old.pem, r.next.pem)
	if r.Step >= stepLeaves {
		a.signer = r.next
	}
	if r.Step >= stepNewOnly {
		a.trusted = r.next.pem
	}
	return nil
}

// Begin makes the new authority beside the old one. From now on bundles hold both. Where a change is under way already
// it makes nothing but the file of whom to trust, which an attempt that was cut short may not have left.
func (a *Authority) Begin(now time.Time) error {
	if a.rotation != nil {
		return a.leaveTrust()
	}
	// Without the record of the step, what an earlier attempt has left is no authority of anything.
	certPEM, keyPEM, err := newAuthority(now)
	if err != nil {
		return err
	}
	r := &rotation{Step: stepBoth, Since: now.UTC().Truncate(time.Second)}
	err = errors.Join(replace(filepath.Join(a.dir, nextKey), keyPEM, 0o600),
		replace(filepath.Join(a.dir, nextCert), certPEM, 0o644))
	if err != nil {
		return err
	}
	if err := r.write(a.dir); err != nil {
		return err
	}
	a.rotation = r
	if err := a.takeUp(r); err != nil {
		return err
	}
	return a.leaveTrust()
}

// Status says how far the change is. ports are what [Authority.Look] has seen, and without names hosts that need not be
// seen.
func (a *Authority) Status(ports []Port, without []string) (Rotation, error) {
	s := Rotation{Ports: append([]Port{}, ports...)}
	if a.rotation == nil {
		return s, nil
	}
	r := a.rotation
	s.Step, s.Since = r.Step, r.Since
	s.Old, s.New = r.old.cert.Subject.CommonName, r.next.cert.Subject.CommonName
	s.OldFingerprint, s.NewFingerprint = fingerprint(r.old.cert), fingerprint(r.next.cert)
	s.Trust = a.trustFile()
	hosts, err := a.Hosts()
	if err != nil {
		return s, err
	}
	s.Missing = missing(r.Step, hosts, ports, without)
	s.Unseen, s.Behind = leftOut(r.Step, ports, without)
	return s, nil
}

// Next takes the next step if nothing is missing for it; what the present one still has to leave is made first. A
// refusal says what is missing, and changes nothing.
func (a *Authority) Next(ports []Port, without []string, now time.Time) (Rotation, error) {
	r := a.rotation
	if r == nil {
		return Rotation{}, refused("quorumctl pki rotate begin", "no change to another authority is under way")
	}
	bundles, err := a.leave(now)
	if err != nil {
		return Rotation{}, err
	}
	s, err := a.Status(ports, without)
	if s.Bundles = bundles; err != nil {
		return s, err
	}
	if len(bundles) > 0 { // they were missing, so no host has them
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
		a.rotation, a.signer, a.trusted = nil, r.next, r.next.pem
		s.Step, s.Since, s.Trust = 0, time.Time{}, ""
		return s, r.end(a.dir)
	}
	a.signer = r.old
	if err := a.takeUp(r); err != nil {
		return s, err
	}
	if bundles, err = a.leave(now); err != nil {
		return s, err
	}
	s, err = a.Status(ports, without)
	s.Bundles = bundles
	return s, err
}

// leave makes what this step hands to the hosts, where it is not there: bundles for those whose newest certificates are
// the old one's, or the file of whom to trust.
func (a *Authority) leave(now time.Time) (bundles []string, err error) {
	if a.trustFile() != "" {
		return nil, a.leaveTrust()
	}
	hosts, err := a.Hosts()
	if err != nil {
		return nil, err
	}
	for _, name := range hosts {
		leaf, err := a.newest(name)
		if err != nil {
			return bundles, err
		}
		if leaf.CheckSignatureFrom(a.cert) == nil {
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

// trustFile is the path of the file of whom to trust that goes to the hosts in this step, or empty.
func (a *Authority) trustFile() string {
	switch a.rotation.Step {
	case stepBoth:
		return filepath.Join(a.dir, trustBoth)
	case stepNewOnly:
		return filepath.Join(a.dir, trustNew)
	}
	return ""
}

// leaveTrust writes that file, if this step has one.
func (a *Authority) leaveTrust() error {
	path := a.trustFile()
	if path == "" {
		return nil
	}
	return replace(path, a.trusted, 0o644)
}

// end puts the files of the new authority in the place of those of the old one, which are kept aside. It may be cut
// short anywhere, and does the rest when it is called again.
func (r *rotation) end(dir string) error {
	aside := filepath.Join(dir, retiredDir)
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, names := range [][2]string{{nextKey, caKey}, {nextCert, caCert}} {
		from, to := filepath.Join(dir, names[0]), filepath.Join(dir, names[1])
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue // it is done
		}
		kept := filepath.Join(aside, r.Since.UTC().Format(stampLayout)+"-"+names[1])
		if err := os.Link(to, kept); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	if err := errors.Join(syncDir(aside), syncDir(dir)); err != nil {
		return err
	}
	for _, name := range []string{trustBoth, trustNew, rotationFile} { // the record last
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(dir)
}

// remedy says what ends a step.
func (a *Authority) remedy() string {
	const again = "; a host that has no etcd now, or is gone for good, is left out by --without NAME"
	restart := "quorumctl rollout start restart --reason 'another authority' on one of them, and ask again"
	switch a.rotation.Step {
	case stepBoth:
		return "on every host: quorumctl pki trust " + trustBoth + "; then " + restart + again
	case stepNewOnly:
		return "on every host: quorumctl pki trust " + trustNew + "; then " + restart + again
	}
	return "on every host: quorumctl pki install its newest bundle, and ask again" + again
}

// sum makes one text of several, of which some are named.
func sum(all []string) string {
	const named = 3
	text := strings.Join(all[:min(len(all), named)], "; ")
	if more := len(all) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// same tells whether two lists of authorities are the same one.
func sameAuthorities(a, b []*certificate) bool {
	return slices.EqualFunc(a, b, func(x, y *certificate) bool { return bytes.Equal(x.Raw, y.Raw) })
}
