// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

func TestPKICreatesCertificatesAndShowsTheirExpiry(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	do := func(code int, says string, args ...string) string {
		t.Helper()
		r := quorumctl(t, "SOCKET", append([]string{"pki"}, args...)...)
		if r.code != code || !strings.Contains(strings.Join(strings.Fields(r.stdout+r.stderr), " "), says) {
			t.Errorf("pki %v: exit %d, want %d and %q\n%s%s", args, r.code, code, says, r.stdout, r.stderr)
		}
		return r.stdout
	}
	do(exitConfig, "→ quorumctl pki init", "host", "n1", "10.0.0.1", "--dir", dir)
	do(exitOK, "a CA for clients and one for peers, valid for 10 years", "init", "--dir", dir)
	do(exitConfig, "nothing is overwritten", "init", "--dir", dir)
	do(exitOK, "certificates and keys of n1, valid for 180 days", "host", "n1", "10.0.0.1", "--dir", dir)
	do(exitConfig, "→ quorumctl pki renew n1", "host", "n1", "10.0.0.1", "--dir", dir)
	do(exitUsage, "etcd would map its certificate to the user of that name", "host", "root", "10.0.0.1", "--dir", dir)
	do(exitUsage, "cannot be valid for 366 days", "host", "n2", "10.0.0.2", "--days", "366", "--dir", dir)
	do(exitUsage, "without a port", "host", "n2", "10.0.0.1:2380", "--dir", dir)
	do(exitUsage, "name a host or use --all, but not both", "renew", "--dir", dir)

	do(exitOK, "etcd server of n1", "status", dir)
	do(1, "179 d", "status", dir, "--warning", "181")
	do(2, "179 d", "status", dir, "--warning", "181", "--critical", "181")
	do(exitUsage, "--critical 10 is more than --warning 5", "status", dir, "--warning", "5", "--critical", "10")
	do(3, "'pki init' creates the CAs", "status", filepath.Join(dir, "nowhere"))
	do(exitUsage, "quorumctl pki host n9 ADDRESS", "renew", "n9", "--dir", dir)
	var certs []pki.Certificate
	err := json.Unmarshal([]byte(do(exitOK, "", "status", dir, "-o", "json")), &certs)
	if err != nil || len(certs) != 5 {
		t.Errorf("%v %+v", err, certs)
	}
}

func TestCommandsThatChangeTheCAsLockThem(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	quorumctl(t, "SOCKET", "pki", "init", "--dir", dir)
	quorumctl(t, "SOCKET", "pki", "host", "n1", "127.0.0.1", "--dir", dir)
	lock, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"host", "n2", "127.0.0.1"},
		{"renew", "n1"},
		{"renew", "--all"},
		{"rotate", "begin"},
		{"rotate", "next"},
		{"rotate", "undo"},
	} {
		r := quorumctl(t, "SOCKET", append(append([]string{"pki"}, args...), "--dir", dir)...)
		if r.code != exitConfig || !strings.Contains(r.stderr, "another 'quorumctl pki' is using "+dir) ||
			!strings.Contains(r.stderr, "→ wait until it is done") {
			t.Errorf("pki %v: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if r := quorumctl(t, "SOCKET", "pki", "rotate", "status", "--dir", dir); r.code != exitOK {
		t.Errorf("rotate status does not need the lock: exit %d: %s", r.code, r.stderr)
	}
}

func TestInstallRefusesABundleOfAnotherHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install := func(file string, flags ...string) result {
		return quorumctl(t, "SOCKET", append([]string{
			"pki", "install", filepath.Join(dir, file), "--dir",
			filepath.Join(dir, "tls"), "--etcd-group", "root", "--quorumd-group", "root",
		}, flags...)...) // any existing group will do
	}
	quorumctl(t, "SOCKET", "pki", "init", "--dir", dir)
	quorumctl(t, "SOCKET", "pki", "host", "n1", "192.0.2.1", "--dir", dir)
	r := install("nope.tar")
	if r.code != exitUsage || !strings.Contains(r.stderr, "→ create one with 'quorumctl pki host'") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	r = install("n1.tar")
	if r.code != exitConfig || !strings.Contains(r.stderr, "for n1 at 192.0.2.1") ||
		!strings.Contains(r.stderr, "--any-address") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	r = install("n1.tar", "--any-address", "-o", "wide")
	if r.code != exitOK || !strings.Contains(r.stdout, "certificates of n1, valid until") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestFinishedRotationNamesSkippedHosts(t *testing.T) {
	t.Parallel()
	const kept = "  the old CA certificates are kept in retired/, and their keys are deleted\n"
	const seen = "  no member that was checked trusts the old CA\n"
	for _, c := range []struct {
		unseen, behind []string
		want           string
	}{
		{nil, nil, kept + seen},
		{
			[]string{"n4", "n5"},
			nil,
			kept + seen + "  not checked: n4, n5: run quorumctl pki status there\n",
		},
		{
			[]string{"n5"},
			[]string{"n4 at n4:2380 still trusts the old CA"},
			kept + "  n4 at n4:2380 still trusts the old CA\n  not checked: n5: run quorumctl pki status there\n",
		},
	} {
		p := &page{}
		writeRotation(p, pki.Rotation{
			CAs: []pki.Change{{For: "peers", New: "etcd peer CA"}}, Unseen: c.unseen, Behind: c.behind,
		})
		if want := "done: the peers use the etcd peer CA\n" + c.want; p.String() != want {
			t.Errorf("unseen %q, behind %q: got\n%swant\n%s", c.unseen, c.behind, p, want)
		}
	}
}

func TestFingerprintsAreShownInFull(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	host := filepath.Join(dir, "n1")
	do := func(args ...string) string {
		t.Helper()
		r := quorumctl(t, "SOCKET", append([]string{"pki"}, args...)...)
		if r.code != exitOK {
			t.Fatalf("pki %v: exit %d: %s", args, r.code, r.stderr)
		}
		return r.stdout
	}
	made := do("init", "--dir", dir)
	do("host", "n1", "127.0.0.1", "--dir", dir)
	installed := do(
		"install",
		dir+"/n1.tar",
		"--any-address",
		"--etcd-group",
		"root",
		"--quorumd-group",
		"root",
		"--dir",
		host,
	)
	var s pki.Rotation
	if err := json.Unmarshal([]byte(do("rotate", "begin", "--dir", dir, "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		do("rotate", "begin", "--dir", dir), do("trust", s.Trust, "--dir", host), made, installed,
	} {
		if len(s.CAs) != 2 {
			t.Fatalf("%+v", s)
		}
		for _, want := range []string{
			s.CAs[0].OldFingerprint, s.CAs[0].NewFingerprint, s.CAs[1].OldFingerprint, s.CAs[1].NewFingerprint,
		} {
			if slices.Contains([]string{s.CAs[0].NewFingerprint, s.CAs[1].NewFingerprint}, want) &&
				(shown == made || shown == installed) {
				continue // these commands ran before the rotation began
			}
			if len(want) != 95 || !strings.Contains(shown, "\n    "+want+"\n") {
				t.Errorf("no line has %q:\n%s", want, shown)
			}
		}
	}
}
