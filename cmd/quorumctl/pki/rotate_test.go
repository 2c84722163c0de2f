// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// port is one that was seen.
func port(host, shows string, old, next Answer) Port {
	return Port{Host: host, URL: "https://" + host + ":2380", For: "peer", Shows: shows, Old: old, New: next}
}

// reopen opens the directory again, as the next command does.
func reopen(t *testing.T, dir string, now time.Time) *Authority {
	t.Helper()
	a, err := Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// advanced is an authority with a host n1 that is in a step of a change, and its directory.
func advanced(t *testing.T, step int) (*Authority, string) {
	t.Helper()
	a, dir := authority(t)
	bundle(t, a, "n1", "10.0.0.1")
	now := today().Add(time.Minute)
	if err := a.Begin(now); err != nil {
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

func TestAStepIsTakenOnlyWhenEveryHostHasBeenSeenToBeDoneWithTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step int
		seen Port
		says string // empty: it is taken
	}{
		{stepBoth, port("n1", ByOld, Accepts, Accepts), ""},
		{stepBoth, port("n1", ByOld, Accepts, Refuses), "does not trust the new authority"},
		{stepBoth, port("n1", ByOld, Accepts, Unknown), "does not tell whether it trusts the new"},
		{stepBoth, port("n1", ByNew, Refuses, Accepts), "does not trust the old authority any more"},
		{stepBoth, port("n1", ByOther, Accepts, Accepts), "neither authority made for that address"},
		{stepBoth, port("n1", "", Unknown, Unknown), "cannot be seen"},
		{stepBoth, port("n2", ByOld, Accepts, Accepts), "n1 has certificates, and is no member"},
		{stepBoth, port("", ByOld, Accepts, Accepts), "n1 has certificates, and is no member"},
		{stepLeaves, port("n1", ByNew, Accepts, Accepts), ""},
		{stepLeaves, port("n1", ByOld, Accepts, Accepts), "shows a certificate of the old authority"},
		{stepLeaves, port("n1", ByNew, Accepts, Refuses), "does not trust the new authority"},
		{stepNewOnly, port("n1", ByNew, Refuses, Accepts), ""},
		{stepNewOnly, port("n1", ByNew, Accepts, Accepts), "still trusts the old authority"},
		{stepNewOnly, port("n1", ByNew, Unknown, Accepts), "does not tell whether it still trusts the old"},
		{stepNewOnly, port("n1", ByOld, Refuses, Accepts), "shows a certificate of the old authority"},
	} {
		a, dir := advanced(t, c.step)
		_, err := a.Next([]Port{c.seen}, nil, today().Add(time.Hour))
		after := 0
		if r := reopen(t, dir, today().Add(time.Hour)).rotation; r != nil {
			after = r.Step
		}
		if c.says == "" {
			if err != nil || after != (c.step+1)%stepEnding {
				t.Errorf("step %d with %+v: %v, then %d", c.step, c.seen, err, after)
			}
			continue
		}
		mustRefuse(t, err, c.says)
		if after != c.step {
			t.Errorf("step %d with %+v was refused, and it is step %d", c.step, c.seen, after)
		}
	}
}

func TestAHostWithoutEtcdIsLeftOutByName(t *testing.T) {
	t.Parallel()
	a, _ := advanced(t, stepBoth)
	bundle(t, a, "n2", "10.0.0.2")
	seen := []Port{port("n1", ByOld, Accepts, Accepts), port("n3", "", Unknown, Unknown)}
	_, err := a.Next(seen, []string{"n3"}, today())
	mustRefuse(t, err, "n2 has certificates, and is no member")
	if _, err := a.Next(seen, []string{"n2", "n3"}, today().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestWhoWasLeftOutIsNotSaidToBeDone(t *testing.T) {
	t.Parallel()
	done := port("n1", ByNew, Refuses, Accepts)
	for _, c := range []struct {
		what           string
		seen           []Port
		without        []string
		unseen, behind []string
	}{
		{"nobody was left out", []Port{done}, nil, nil, nil},
		{"one that is no member", []Port{done}, []string{"n4"}, []string{"n4"}, nil},
		{
			"one that does not answer",
			[]Port{done, port("n4", "", Unknown, Unknown)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{"one that is named twice", []Port{done}, []string{"n4", "n3", "n4"}, []string{"n3", "n4"}, nil},
		{
			"one of which a port was seen",
			[]Port{done, port("n4", ByNew, Refuses, Accepts), port("n4", "", Unknown, Unknown)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{
			"one that does not tell",
			[]Port{done, port("n4", ByNew, Unknown, Accepts)},
			[]string{"n4"},
			[]string{"n4"},
			nil,
		},
		{"one that is done", []Port{done, port("n4", ByNew, Refuses, Accepts)}, []string{"n4"}, nil, nil},
		{
			"one that is not",
			[]Port{done, port("n4", ByNew, Accepts, Accepts)},
			[]string{"n4"},
			nil,
			[]string{"n4 at n4:2380 still trusts the old authority"},
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

func TestBundlesOfEachStepHoldWhatTheHostsTrustThen(t *testing.T) {
	t.Parallel()
	for step, want := range map[int]struct {
		authorities int
		byNew       bool
	}{stepBoth: {2, false}, stepLeaves: {2, true}, stepNewOnly: {1, true}} {
		a, _ := advanced(t, step)
		f, err := readBundle(bundle(t, a, "n7", "10.0.0.7"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.check(today()); err != nil {
			t.Error(err)
		}
		certs, err := parseCertificates(caCert, f[caCert])
		if err != nil || len(certs) != want.authorities {
			t.Errorf("step %d: %d authorities, %v", step, len(certs), err)
		}
		leaf, err := parseCertificates("peer", f["peer.crt"])
		if err != nil || (leaf[0].CheckSignatureFrom(a.rotation.next.cert) == nil) != want.byNew {
			t.Errorf("step %d: a new one by the new authority: %v, %v", step, !want.byNew, err)
		}
	}
}

func TestBundlesThatWereNotMadeAreMadeByTheNextAttempt(t *testing.T) {
	t.Parallel()
	a, dir := advanced(t, stepLeaves)
	a.signer = a.rotation.old // as if it had been cut short before this host
	if _, err := a.Host("n2", []string{"10.0.0.2"}, today()); err != nil {
		t.Fatal(err)
	}
	a = reopen(t, dir, today())
	s, err := a.Next([]Port{port("n1", ByNew, Accepts, Accepts)}, nil, today().Add(time.Hour))
	if err != nil || s.Step != stepLeaves || len(s.Bundles) != 1 || !strings.Contains(s.Bundles[0], "n2-") {
		t.Errorf("%+v %v", s, err)
	}
}

func TestBeginningOnceMoreChangesNothing(t *testing.T) {
	t.Parallel()
	a, dir := advanced(t, stepBoth)
	before, err := os.ReadFile(filepath.Join(dir, nextCert))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, trustBoth)); err != nil { // which Begin leaves last
		t.Fatal(err)
	}
	if err := a.Begin(today().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, trustBoth)); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, nextCert)); err != nil || !slices.Equal(before, after) {
		t.Error("there is another authority", err)
	}
	for _, name := range []string{nextKey, rotationFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	quiet, _ := authority(t)
	_, err = quiet.Next(nil, nil, today())
	mustRefuse(t, err, "no change to another authority is under way")
}

func TestBeginningOnceMoreLeavesTheFileThatAnAttemptCutShortHasNot(t *testing.T) {
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
		if err := os.Remove(s.Trust); err != nil { // as if it had been cut short after the record of the step
			t.Fatal(err)
		}
		a = reopen(t, dir, today().Add(time.Hour))
		if err := a.Begin(today().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(s.Trust); err != nil || !slices.Equal(got, want) {
			t.Errorf("step %d: %s is named, and it is not there as it was: %v", step, s.Trust, err)
		}
	}
}

func TestAChangeThatWasCutShortAsItEndedIsEndedByTheNextCommand(t *testing.T) {
	t.Parallel()
	for done := range 6 {
		a, dir := advanced(t, stepNewOnly)
		name, old := a.cert.Subject.CommonName, a.rotation.old.cert.Subject.CommonName
		a.rotation.Step = stepEnding
		if err := a.rotation.write(dir); err != nil {
			t.Fatal(err)
		}
		in := func(name string) string { return filepath.Join(dir, name) }
		stamp := a.rotation.Since.Format(stampLayout) + "-"
		for i, do := range []func() error{
			func() error { return os.Mkdir(in(retiredDir), 0o700) },
			func() error { return os.Link(in(caKey), filepath.Join(dir, retiredDir, stamp+caKey)) },
			func() error { return os.Rename(in(nextKey), in(caKey)) },
			func() error { return os.Link(in(caCert), filepath.Join(dir, retiredDir, stamp+caCert)) },
			func() error { return os.Rename(in(nextCert), in(caCert)) },
		} {
			if i >= done {
				break
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		b := reopen(t, dir, today().Add(time.Hour))
		if b.cert.Subject.CommonName != name || b.rotation != nil {
			t.Errorf("after %d: the authority is %s, want %s", done, b.cert.Subject.CommonName, name)
		}
		kept, err := openSigner(filepath.Join(dir, retiredDir), stamp+caCert, stamp+caKey)
		if err != nil || kept.cert.Subject.CommonName != old {
			t.Errorf("after %d: the old one is not kept: %v", done, err)
		}
		for _, gone := range []string{nextKey, nextCert, rotationFile, trustBoth, trustNew} {
			if _, err := os.Lstat(in(gone)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after %d: %s is left", done, gone)
			}
		}
	}
}

func TestARecordOfAStepThatNobodyKnowsStopsAll(t *testing.T) {
	t.Parallel()
	_, dir := advanced(t, stepBoth)
	for _, text := range []string{`{"step": 9}`, `{"step": 0}`, "", "[]", strings.Repeat("x", maxFile+1)} {
		if err := os.WriteFile(filepath.Join(dir, rotationFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, today()); err == nil {
			t.Errorf("%.20q was taken", text)
		}
	}
}
