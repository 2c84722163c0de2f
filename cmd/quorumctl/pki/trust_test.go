// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestHostTrustsBothCAsAndThenOnlyTheNewOne(t *testing.T) {
	t.Parallel()
	a, dir := newDirectory(t)
	p, later := place(t), today().Add(time.Minute)
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, later); err != nil {
		t.Fatal(err)
	}
	if err := a.Begin(false, later); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(dir, trustBoth)
	// each installs a trust file, and checks the numbers of CAs, added CAs and dropped CAs in both CA files.
	each := func(file string, cas, added, dropped int) {
		t.Helper()
		done, err := Trust(file, p.Dir, later)
		if err != nil || len(done.Files) != 2 {
			t.Fatalf("%+v %v", done, err)
		}
		for _, f := range done.Files {
			if len(f.CAs) != cas || len(f.Fingerprints) != cas || len(f.Added) != added || len(f.Dropped) != dropped ||
				f.New {
				t.Errorf("%+v, want %d CAs, %d added, %d dropped", f, cas, added, dropped)
			}
		}
	}
	each(both, 2, 1, 0)
	each(both, 2, 0, 0)
	s, err := a.Next([]Port{port("n1", ByOld, Accepts, Accepts)}, nil, later)
	if err != nil {
		t.Fatal(err)
	}
	next := a.rotation.next
	_, err = Trust(trustTar(t, files{caCert: next.clients.pem, peerCACert: next.peers.pem}), p.Dir, later)
	mustRefuse(t, err, "server.crt of this host was issued by a CA that the file lacks")
	if _, err := Install(s.Bundles[0], p, later); err != nil {
		t.Fatal(err)
	}
	if s, err = a.Next([]Port{port("n1", ByNew, Accepts, Accepts)}, nil, later); err != nil {
		t.Fatal(err)
	}
	each(s.Trust, 1, 0, 1)
	if info, err := os.Stat(filepath.Join(p.Dir, caCert)); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// trustTar creates a trust file, as a rotation does, with any contents.
func trustTar(t *testing.T, f files) string {
	t.Helper()
	names := slices.Sorted(maps.Keys(f))
	packed, err := f.pack(names, today())
	file := filepath.Join(t.TempDir(), "trust.tar")
	if err == nil {
		err = os.WriteFile(file, packed, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // independent of the umask
		t.Fatal(err)
	}
	return file
}

func TestTrustFileThatWouldSeparateAHostIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	stranger, _ := newDirectory(t)
	p := place(t)
	own := trustTar(t, a.trusted)
	_, err := Trust(own, p.Dir, today())
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
	damaged := []byte("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n")
	for says, f := range map[string]files{
		"the new ca.crt drops every CA":      {caCert: stranger.clients.pem, peerCACert: a.peers.pem},
		"the new peer-ca.crt drops every CA": {caCert: a.clients.pem, peerCACert: a.clients.pem},
		"is not a CA":                        {caCert: slices.Concat(leaf, before), peerCACert: a.peers.pem},
		"contains no certificate":            {caCert: []byte("hello"), peerCACert: a.peers.pem},
		"a damaged certificate:":             {caCert: damaged, peerCACert: a.peers.pem},
		"peer-ca.crt is missing":             {caCert: a.clients.pem},
	} {
		file := trustTar(t, f)
		_, err := Trust(file, p.Dir, today())
		mustRefuse(t, err, says)
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err = Trust(file, p.Dir, today())
		mustRefuse(t, err, "other users may have changed it")
	}
	_, err = Trust(own, p.Dir, today().AddDate(11, 0, 0))
	mustRefuse(t, err, "the CA's certificate expired on")
	_, err = Trust(filepath.Join(a.dir, caCert), p.Dir, today())
	mustRefuse(t, err, "contains no CAs")
	_, err = Trust(filepath.Join(a.dir, "nope"), p.Dir, today())
	mustRefuse(t, err, "there is no")
	if after, err := os.ReadFile(filepath.Join(p.Dir, caCert)); err != nil || string(after) != string(before) {
		t.Errorf("a refused file was installed: %v", err)
	}
}

func TestTrustFileOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	p := place(t)
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	file := trustTar(t, a.trusted) // mode 0644, owned by the user who runs the test
	others := []int{os.Geteuid() + 1, os.Geteuid() + 2}
	_, err := trust(file, p.Dir, others, today())
	mustRefuse(t, err, "belongs to user "+strconv.Itoa(os.Geteuid()))
	if _, err := trust(file, p.Dir, append(others, os.Geteuid()), today()); err != nil {
		t.Error(err)
	}
}

func TestFilesOfRootTheCurrentUserAndTheSudoUserAreAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		euid int
		sudo string
		want []int
	}{
		{0, "", []int{0, 0}},
		{0, "1000", []int{0, 0, 1000}},
		{1000, "", []int{0, 1000}},
		{1000, "1001", []int{0, 1000}}, // SUDO_UID counts only for root
		{0, "-1", []int{0, 0}},
		{0, "4294967296", []int{0, 0}},
		{0, "bert", []int{0, 0}},
	} {
		if got := owners(c.euid, c.sudo); !slices.Equal(got, c.want) {
			t.Errorf("user %d, sudo by %q: %v, want %v", c.euid, c.sudo, got, c.want)
		}
	}
}

func TestFingerprintsAreTheSameAsWithOpenSSL(t *testing.T) {
	t.Parallel()
	raw := []byte("abc") // FIPS 180 contains its hash
	const want = "BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD"
	if got := fingerprint(&x509.Certificate{Raw: raw}); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a, _ := advanced(t, stepBoth)
	s, err := a.Status(nil, nil)
	if err != nil || len(s.CAs) != 2 || s.CAs[0].OldFingerprint != fingerprint(a.rotation.old.clients.cert) ||
		s.CAs[1].NewFingerprint != fingerprint(a.rotation.next.peers.cert) {
		t.Errorf("%+v %v", s, err)
	}
}
