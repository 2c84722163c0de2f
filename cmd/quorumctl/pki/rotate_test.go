// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// port returns the result for a port.
func port(host, shows string, old, next Answer) Port {
	return Port{Host: host, URL: "https://" + host + ":2380", For: "peer", Shows: shows, Old: old, New: next}
}

// reopen opens the directory again, as the next command does.
func reopen(t *testing.T, dir string, now time.Time) *Directory {
	t.Helper()
	a, err := Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// advanced returns a CA directory with the host n1 and a rotation in the given step, and the path of the directory.
func advanced(t *testing.T, step int) (*Directory, string) {
	t.Helper()
	a, dir := newDirectory(t)
	bundle(t, a, "n1", "10.0.0.1")
	now := today().Add(time.Minute)
	if err := a.Begin(false, now); err != nil {
		t.Fatal(err)
	}
	for a.rotation.Step < step {
		seen := map[int]Port{
			stepBoth: port("n1", ByOld, Accepts, Accepts), stepLeaves: port("n1", ByNew, Accepts, Accepts),
		}[a.rotation.Step]
		if _, err := a.Next([]Port{seen}, nil, now); err != nil {
			t.Fatal(err)
		}
		a = reopen(t, dir, now)
	}
	return a, dir
}

func TestNextStepBeginsOnlyAfterEveryHostHasCompletedTheCurrentOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step int
		seen Port
		want string // empty: accepted
	}{
		{stepBoth, port("n1", ByOld, Accepts, Accepts), ""},
		{stepBoth, port("n1", ByOld, Accepts, Refuses), "does not trust the new CA"},
		{stepBoth, port("n1", ByOld, Accepts, Unknown), "is not known to trust the new"},
		{stepBoth, port("n1", ByNew, Refuses, Accepts), "no longer trusts the old CA"},
		{stepBoth, port("n1", ByOther, Accepts, Accepts), "neither CA signed for that address"},
		{stepBoth, port("n1", "", Unknown, Unknown), "cannot be checked"},
		{stepBoth, port("n2", ByOld, Accepts, Accepts), "n1 has certificates but is not a member"},
		{stepBoth, port("", ByOld, Accepts, Accepts), "n1 has certificates but is not a member"},
		{stepLeaves, port("n1", ByNew, Accepts, Accepts), ""},
		{stepLeaves, port("n1", ByOld, Accepts, Accepts), "presents a certificate signed by the old CA"},
		{stepLeaves, port("n1", ByNew, Accepts, Refuses), "does not trust the new CA"},
		{stepNewOnly, port("n1", ByNew, Refuses, Accepts), ""},
		{stepNewOnly, port("n1", ByNew, Accepts, Accepts), "still trusts the old CA"},
		{stepNewOnly, port("n1", ByNew, Unknown, Accepts), "may still trust the old"},
		{stepNewOnly, port("n1", ByOld, Refuses, Accepts), "presents a certificate signed by the old CA"},
	} {
		a, dir := advanced(t, c.step)
		_, err := a.Next([]Port{c.seen}, nil, today().Add(time.Hour))
		after := 0
		if r := reopen(t, dir, today().Add(time.Hour)).rotation; r != nil {
			after = r.Step
		}
		if c.want == "" {
			if err != nil || after != (c.step+1)%stepEnding {
				t.Errorf("step %d with %+v: %v, then %d", c.step, c.seen, err, after)
			}
			continue
		}
		mustRefuse(t, err, c.want)
		if after != c.step {
			t.Errorf("step %d with %+v was refused, but the step is now %d", c.step, c.seen, after)
		}
	}
}

func TestHostWithoutEtcdCanBeSkippedByName(t *testing.T) {
	t.Parallel()
	a, _ := advanced(t, stepBoth)
	bundle(t, a, "n2", "10.0.0.2")
	seen := []Port{port("n1", ByOld, Accepts, Accepts), port("n3", "", Unknown, Unknown)}
	_, err := a.Next(seen, []string{"n3"}, today())
	mustRefuse(t, err, "n2 has certificates but is not a member")
	if _, err := a.Next(seen, []string{"n2", "n3"}, today().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestSkippedHostsAreReportedAsUnseenOrBehind(t *testing.T) {
	t.Parallel()
	done := port("n1", ByNew, Refuses, Accepts)
	for _, c := range []struct {
		what           string
		seen           []Port
		without        []string
		unseen, behind []string
	}{
		{"no host was skipped", []Port{done}, nil, nil, nil},
		{"not a member", []Port{done}, []string{"n4"}, []string{"n4"}, nil},
		{
			"does not answer",
			[]Port{done, port("n4", "", Unknown, Unknown)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{"named twice", []Port{done}, []string{"n4", "n3", "n4"}, []string{"n3", "n4"}, nil},
		{
			"only one port answers",
			[]Port{done, port("n4", ByNew, Refuses, Accepts), port("n4", "", Unknown, Unknown)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{
			"trusted CAs unknown",
			[]Port{done, port("n4", ByNew, Unknown, Accepts)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{"done", []Port{done, port("n4", ByNew, Refuses, Accepts)}, []string{"n4"}, nil, nil},
		{
			"not done",
			[]Port{done, port("n4", ByNew, Accepts, Accepts)},
			[]string{"n4"},
			nil,
			[]string{"n4 at n4:2380 still trusts the old CA"},
		},
	} {
		a, _ := advanced(t, stepNewOnly)
		s, err := a.Next(c.seen, c.without, today().Add(time.Hour))
		if err != nil || s.Step != 0 || !slices.Equal(s.Unseen, c.unseen) || !slices.Equal(s.Behind, c.behind) {
			t.Errorf("%s: unseen %q, behind %q, want %q, %q: %+v, %v", c.what, s.Unseen, s.Behind, c.unseen, c.behind,
				s, err)
		}
	}
}

func TestBundlesOfEachStepContainTheCAsOfThatStep(t *testing.T) {
	t.Parallel()
	for step, want := range map[int]struct {
		cas   int
		byNew bool
	}{stepBoth: {2, false}, stepLeaves: {2, true}, stepNewOnly: {1, true}} {
		a, _ := advanced(t, step)
		f, err := readBundle(bundle(t, a, "n7", "10.0.0.7"), testUsers())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.check(today()); err != nil {
			t.Error(err)
		}
		for _, file := range caFiles() {
			certs, err := parseCertificates(file, f[file])
			if err != nil || len(certs) != want.cas {
				t.Errorf("step %d: %d CAs in %s, %v", step, len(certs), file, err)
			}
		}
		leaf, err := parseCertificates("peer", f["peer.crt"])
		if err != nil || (leaf[0].CheckSignatureFrom(a.rotation.next.peers.cert) == nil) != want.byNew {
			t.Errorf("step %d: a new one by the new CA: %v, %v", step, !want.byNew, err)
		}
	}
}

func TestMissingBundlesAreCreatedByTheNextAttempt(t *testing.T) {
	t.Parallel()
	a, dir := advanced(t, stepLeaves)
	a.cas = a.rotation.old // as after an interruption
	if _, err := a.Host("n2", []string{"10.0.0.2"}, today()); err != nil {
		t.Fatal(err)
	}
	a = reopen(t, dir, today())
	s, err := a.Next([]Port{port("n1", ByNew, Accepts, Accepts)}, nil, today().Add(time.Hour))
	if err != nil || s.Step != stepLeaves || len(s.Bundles) != 1 || !strings.Contains(s.Bundles[0], "n2-") {
		t.Errorf("%+v %v", s, err)
	}
}

func TestSecondBeginChangesNothing(t *testing.T) {
	t.Parallel()
	a, dir := advanced(t, stepBoth)
	before, err := os.ReadFile(filepath.Join(dir, nextCert))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, trustBoth)); err != nil { // Begin writes it last
		t.Fatal(err)
	}
	if err := a.Begin(false, today().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, trustBoth)); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, nextCert)); err != nil || !slices.Equal(before, after) {
		t.Error("the CA has changed", err)
	}
	for _, name := range []string{nextKey, nextPeerKey, rotationFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	quiet, _ := newDirectory(t)
	_, err = quiet.Next(nil, nil, today())
	mustRefuse(t, err, "no CA rotation is in progress")
}

func TestSecondBeginWritesTheMissingTrustFile(t *testing.T) {
	t.Parallel()
	for _, step := range []int{stepBoth, stepNewOnly} {
		a, dir := advanced(t, step)
		s, err := a.Status(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(s.Trust)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(s.Trust); err != nil { // as after an interruption
			t.Fatal(err)
		}
		a = reopen(t, dir, today().Add(time.Hour))
		if err := a.Begin(false, today().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(s.Trust); err != nil || !slices.Equal(got, want) {
			t.Errorf("step %d: %s was not written again: %v", step, s.Trust, err)
		}
	}
}

func TestInterruptedEndIsCompletedByTheNextCommand(t *testing.T) {
	t.Parallel()
	for done := range 8 {
		a, dir := advanced(t, stepNewOnly)
		name, old := a.clients.cert.Subject.CommonName, a.rotation.old.clients.cert
		a.rotation.Step = stepEnding
		if err := a.rotation.write(dir); err != nil {
			t.Fatal(err)
		}
		in := func(name string) string { return filepath.Join(dir, name) }
		stamp := a.rotation.Since.Format(stampLayout) + "-"
		for i, do := range []func() error{
			func() error { return os.Mkdir(in(retiredDir), 0o700) },
			func() error { return os.Rename(in(nextKey), in(caKey)) },
			func() error { return os.Link(in(caCert), filepath.Join(dir, retiredDir, stamp+caCert)) },
			func() error { return os.Rename(in(nextCert), in(caCert)) },
			func() error { return os.Rename(in(nextPeerKey), in(peerCAKey)) },
			func() error { return os.Link(in(peerCACert), filepath.Join(dir, retiredDir, stamp+peerCACert)) },
			func() error { return os.Rename(in(nextPeerCert), in(peerCACert)) },
		} {
			if i >= done {
				break
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		b := reopen(t, dir, today().Add(time.Hour))
		if b.clients.cert.Subject.CommonName != name || b.rotation != nil {
			t.Errorf("after %d: the CA is %s, want %s", done, b.clients.cert.Subject.CommonName, name)
		}
		kept, err := readCertificates(filepath.Join(dir, retiredDir, stamp+caCert))
		if err != nil || !same(kept[0], old) {
			t.Errorf("after %d: the old certificate is not kept: %v", done, err)
		}
		wantFiles(t, dir, caCert, caKey, peerCACert, peerCAKey, issuedDir, retiredDir, "n1.tar")
		wantFiles(t, filepath.Join(dir, retiredDir), stamp+caCert, stamp+peerCACert)
	}
}

// wantFiles checks that a directory contains these files and, apart from bundles of n1, nothing else, in particular no
// key of a retired CA.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "n1-") {
			got = append(got, e.Name())
		}
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// seenAt returns the ports of n1 after it has completed a step.
func seenAt(step int) []Port {
	return []Port{map[int]Port{
		stepBoth: port("n1", ByOld, Accepts, Accepts), stepLeaves: port("n1", ByNew, Accepts, Accepts),
		stepNewOnly: port("n1", ByNew, Refuses, Accepts),
	}[step]}
}

func TestRotationCanBeReversedInEveryStep(t *testing.T) {
	t.Parallel()
	for from := stepBoth; from <= stepNewOnly; from++ {
		a, dir := advanced(t, from)
		before, abandoned := a.rotation.old, a.rotation.next
		later := today().Add(time.Hour)
		s, err := a.Undo(later)
		if err != nil || !s.Back || s.Step != stepEnding-from {
			t.Fatalf("reversed in step %d: %+v %v", from, s, err)
		}
		for step := stepEnding - from; step < stepEnding; step++ {
			a = reopen(t, dir, later)
			if a.rotation.Step != step || !same(a.rotation.next.peers.cert, before.peers.cert) {
				t.Fatalf("reversed in step %d: now step %d, want %d", from, a.rotation.Step, step)
			}
			later = later.Add(time.Minute)
			if _, err := a.Next(seenAt(step), nil, later); err != nil {
				t.Fatalf("reversed in step %d: %v", from, err)
			}
		}
		a = reopen(t, dir, later)
		if a.rotation != nil || !same(a.clients.cert, before.clients.cert) || !same(a.peers.cert, before.peers.cert) {
			t.Errorf("reversed in step %d: the CAs are not the previous ones", from)
		}
		leaf, err := a.newest("n1")
		if err != nil || leaf.CheckSignatureFrom(before.clients.cert) != nil {
			t.Errorf("reversed in step %d: n1's newest certificate is not from the previous CA: %v", from, err)
		}
		wantFiles(t, dir, caCert, caKey, peerCACert, peerCAKey, issuedDir, retiredDir, "n1.tar")
		kept, err := filepath.Glob(filepath.Join(dir, retiredDir, "*Z-"+caCert))
		if err != nil || len(kept) != 1 {
			t.Fatal(kept, err)
		}
		if c, err := readCertificates(kept[0]); err != nil || !same(c[0], abandoned.clients.cert) {
			t.Errorf("reversed in step %d: the certificate of the abandoned CA is not kept: %v", from, err)
		}
	}
	quiet, _ := newDirectory(t)
	_, err := quiet.Undo(today())
	mustRefuse(t, err, "no CA rotation is in progress")
}

func TestReversedRotationCanBeReversedAgain(t *testing.T) {
	t.Parallel()
	a, dir := advanced(t, stepLeaves)
	next := a.rotation.next
	for i := range 2 {
		if _, err := a.Undo(today().Add(time.Duration(i+1) * time.Hour)); err != nil {
			t.Fatal(err)
		}
		a = reopen(t, dir, today().Add(2*time.Hour))
	}
	if a.rotation.Back || !same(a.peers.cert, next.peers.cert) {
		t.Error("the target is not the new CA again")
	}
}

// sharedDirectory creates a directory with a single CA for clients and peers.
func sharedDirectory(t *testing.T) (*Directory, string) {
	t.Helper()
	_, dir := newDirectory(t)
	for _, name := range []string{peerCACert, peerCAKey} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return reopen(t, dir, today()), dir
}

func sharedSeen(all []Certificate) bool {
	return slices.ContainsFunc(all, func(c Certificate) bool { return c.Shared })
}

func TestSharedCAIsSeparatedByARotationOfThePeersCA(t *testing.T) {
	t.Parallel()
	a, dir := sharedDirectory(t)
	p, now := place(t), today()
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, now); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.Dir, peerCACert)); err != nil { // a host with a single CA has no such file
		t.Fatal(err)
	}
	clients := a.clients.cert
	for _, in := range []string{dir, p.Dir} {
		if all, err := Inspect(in, now); err != nil || !sharedSeen(all) {
			t.Errorf("%s is not reported as a shared CA: %+v %v", in, all, err)
		}
	}
	if err := a.Begin(true, now); err != nil {
		t.Fatal(err)
	}
	trusted, err := Trust(filepath.Join(dir, trustBoth), p.Dir, now)
	if err != nil || len(trusted.Files[0].Added) != 0 || len(trusted.Files[1].Added) != 1 || !trusted.Files[1].New {
		t.Errorf("%+v %v", trusted, err)
	}
	for step := stepBoth; step < stepEnding; step++ {
		now = now.Add(time.Minute)
		a = reopen(t, dir, now)
		s, err := a.Next(seenAt(step), nil, now)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Bundles) > 0 {
			if _, err := Install(s.Bundles[0], p, now); err != nil {
				t.Error(err)
			}
		}
		if step == stepLeaves {
			if all, err := Inspect(p.Dir, now); err != nil || !sharedSeen(all) {
				t.Errorf("after the first step: %+v %v", all, err)
			}
			if trusted, err = Trust(s.Trust, p.Dir, now); err != nil || len(trusted.Files[1].Dropped) != 1 {
				t.Errorf("%+v %v", trusted, err)
			}
		}
	}
	a = reopen(t, dir, now)
	if a.Shared() || !same(a.clients.cert, clients) {
		t.Error("the CAs are not separated, or the clients' CA has changed")
	}
	for _, in := range []string{dir, p.Dir} {
		if all, err := Inspect(in, now); err != nil || sharedSeen(all) {
			t.Errorf("%s is reported as a shared CA: %+v %v", in, all, err)
		}
	}
	leaf, err := readCertificates(filepath.Join(p.Dir, "peer.crt"))
	if err != nil || leaf[0].CheckSignatureFrom(a.peers.cert) != nil {
		t.Errorf("n1's certificate for peers is not from their CA: %v", err)
	}
	wantFiles(t, dir, caCert, caKey, peerCACert, peerCAKey, issuedDir, retiredDir, "n1.tar")
}

func TestUnknownStepInTheRecordIsRefused(t *testing.T) {
	t.Parallel()
	_, dir := advanced(t, stepBoth)
	for _, text := range []string{`{"step": 9}`, `{"step": 0}`, "", "[]", strings.Repeat("x", maxFile+1)} {
		if err := os.WriteFile(filepath.Join(dir, rotationFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, today()); err == nil {
			t.Errorf("%.20q was accepted", text)
		}
	}
}
