// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestAHostTrustsBothAndThenTheNewAuthorityAlone(t *testing.T) {
	t.Parallel()
	a, dir := authority(t)
	p, later := place(t), today().Add(time.Minute)
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, later); err != nil {
		t.Fatal(err)
	}
	if err := a.Begin(later); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(dir, trustBoth)
	done, err := Trust(both, p.Dir, later)
	if err != nil || len(done.Fingerprints) != 2 || len(done.Added) != 1 || len(done.Dropped) != 0 {
		t.Errorf("%+v %v", done, err)
	}
	if done, err = Trust(both, p.Dir, later); err != nil || len(done.Added)+len(done.Dropped) != 0 {
		t.Errorf("the same once more: %+v %v", done, err)
	}
	s, err := a.Next([]Port{port("n1", ByOld, Accepts, Accepts)}, nil, later)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.pem")
	if err := os.WriteFile(alone, a.rotation.next.pem, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Trust(alone, p.Dir, later)
	mustRefuse(t, err, "server.crt of this host is of an authority that is not in it")
	if _, err := Install(s.Bundles[0], p, later); err != nil {
		t.Fatal(err)
	}
	if s, err = a.Next([]Port{port("n1", ByNew, Accepts, Accepts)}, nil, later); err != nil {
		t.Fatal(err)
	}
	if done, err = Trust(s.Trust, p.Dir, later); err != nil || len(done.Authorities) != 1 || len(done.Dropped) != 1 {
		t.Errorf("%+v %v", done, err)
	}
	if info, err := os.Stat(filepath.Join(p.Dir, caCert)); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestAFileThatWouldCutAHostOffIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := authority(t)
	stranger, _ := authority(t)
	p := place(t)
	_, err := Trust(filepath.Join(a.dir, caCert), p.Dir, today())
	mustRefuse(t, err, "has no certificates")
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(p.Dir, caCert))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := os.ReadFile(filepath.Join(p.Dir, "peer.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for says, data := range map[string][]byte{
		"trusts none of these":   stranger.pem,
		"is no authority":        append(leaf, before...),
		"no certificate in it":   []byte("hello"),
		"a damaged certificate:": []byte("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"),
	} {
		file := filepath.Join(t.TempDir(), "trust.pem")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Trust(file, p.Dir, today())
		mustRefuse(t, err, says)
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err = Trust(file, p.Dir, today())
		mustRefuse(t, err, "others may have written it")
	}
	_, err = Trust(filepath.Join(a.dir, caCert), p.Dir, today().AddDate(11, 0, 0))
	mustRefuse(t, err, "the authority's certificate expired on")
	_, err = Trust(filepath.Join(a.dir, "nope"), p.Dir, today())
	mustRefuse(t, err, "there is no")
	if after, err := os.ReadFile(filepath.Join(p.Dir, caCert)); err != nil || string(after) != string(before) {
		t.Errorf("what was refused has changed the file: %v", err)
	}
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := authority(t)
	p := place(t)
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.dir, caCert) // mode 0644, and of who runs the test
	others := []int{os.Geteuid() + 1, os.Geteuid() + 2}
	_, err := trust(file, p.Dir, others, today())
	mustRefuse(t, err, "belongs to the user "+strconv.Itoa(os.Geteuid()))
	if _, err := trust(file, p.Dir, append(others, os.Geteuid()), today()); err != nil {
		t.Error(err)
	}
}

func TestTheFilesOfRootOfTheCallerAndOfWhoCalledSudoAreTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		euid int
		sudo string
		want []int
	}{
		{0, "", []int{0, 0}},
		{0, "1000", []int{0, 0, 1000}},
		{1000, "", []int{0, 1000}},
		{1000, "1001", []int{0, 1000}}, // who is not root has not become it by sudo
		{0, "-1", []int{0, 0}},
		{0, "4294967296", []int{0, 0}},
		{0, "bert", []int{0, 0}},
	} {
		if got := owners(c.euid, c.sudo); !slices.Equal(got, c.want) {
			t.Errorf("user %d, sudo by %q: %v, want %v", c.euid, c.sudo, got, c.want)
		}
	}
}

func TestFingerprintsAreThoseThatOpensslShows(t *testing.T) {
	t.Parallel()
	raw := []byte("abc") // with the sum of FIPS 180
	const want = "BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD"
	if got := fingerprint(&x509.Certificate{Raw: raw}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a, _ := advanced(t, stepBoth)
	s, err := a.Status(nil, nil)
	if err != nil || s.OldFingerprint != fingerprint(a.rotation.old.cert) ||
		s.NewFingerprint != fingerprint(a.rotation.next.cert) {
		t.Errorf("%+v %v", s, err)
	}
}
