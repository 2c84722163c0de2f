// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"archive/tar"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// today is an arbitrary day: these tests do not use the clock.
func today() time.Time { return time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC) }

func newDirectory(t *testing.T) (*Directory, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := Create(dir, today()); err != nil {
		t.Fatal(err)
	}
	a, err := Open(dir, today())
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// bundle creates a host's first bundle.
func bundle(t *testing.T, a *Directory, name string, addresses ...string) string {
	t.Helper()
	path, err := a.Host(name, addresses, today())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func place(t *testing.T) Place {
	t.Helper()
	return Place{Dir: filepath.Join(t.TempDir(), "tls"), Etcd: -1, Quorumd: -1}
}

// mustRefuse requires an error that contains the text and has a remedy.
func mustRefuse(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Remedy == "" || !strings.Contains(e.Text, want) {
		t.Errorf("got %v (%T), want a refusal with %q and a remedy", err, err, want)
	}
}

func TestTwoInstalledHostsTrustEachOtherAsServerAndAsClient(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	pairs := map[string]tls.Certificate{}
	pools := map[string]*x509.CertPool{"server": x509.NewCertPool(), "peer": x509.NewCertPool()}
	for i, name := range []string{"n1", "n2"} {
		p := place(t)
		if _, err := Install(bundle(t, a, name, fmt.Sprintf("10.0.0.%d", i+1)), p, today()); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"server", "peer", "client"} {
			pair, err := tls.LoadX509KeyPair(filepath.Join(p.Dir, kind+".crt"), filepath.Join(p.Dir, kind+".key"))
			if err != nil {
				t.Fatal(err)
			}
			pairs[name+" "+kind] = pair
		}
		for at, file := range map[string]string{"server": caCert, "peer": peerCACert} {
			ca, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil || !pools[at].AppendCertsFromPEM(ca) {
				t.Fatal("no CA", err)
			}
		}
	}
	for _, c := range []struct {
		client, server, at string
		works              bool
	}{
		{"n1 peer", "n2 peer", "10.0.0.2", true},
		{"n2 peer", "n1 peer", "n1", true},
		{"n1 client", "n2 server", "10.0.0.2", true},
		{"n2 server", "n2 server", "localhost", true}, // etcd's gateway
		{"n1 client", "n2 server", "10.0.0.1", false},
		{"n1 client", "n2 client", "10.0.0.2", false}, // quorumd's certificate is only for clients
		{"n1 client", "n2 peer", "10.0.0.2", false},   // the peer port is for members only
		{"n1 server", "n2 peer", "10.0.0.2", false},
		{"n1 peer", "n2 server", "10.0.0.2", false}, // a member is not an etcd user
	} {
		_, port, _ := strings.Cut(c.server, " ")
		pool := pools[map[string]string{"server": "server", "peer": "peer", "client": "server"}[port]]
		err := handshake(&tls.Config{
			Certificates: []tls.Certificate{pairs[c.client]}, RootCAs: pool, ServerName: c.at, Time: today,
		}, &tls.Config{
			Certificates: []tls.Certificate{pairs[c.server]}, ClientCAs: pool, Time: today,
			ClientAuth: tls.RequireAndVerifyClientCert,
		})
		if (err == nil) != c.works {
			t.Errorf("%s to %s at %s: %v", c.client, c.server, c.at, err)
		}
	}
}

func TestEachHostHasItsOwnKeysAndQuorumdsCertificateNamesItsUser(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	one, err := readBundle(bundle(t, a, "n1", "10.0.0.1"), testUsers())
	if err != nil {
		t.Fatal(err)
	}
	two, err := readBundle(bundle(t, a, "n2", "10.0.0.2"), testUsers())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range []files{one, two} {
		for _, name := range []string{"server.key", "peer.key", "client.key"} {
			if seen[string(f[name])] {
				t.Errorf("%s is not unique", name)
			}
			seen[string(f[name])] = true
		}
	}
	common := func(name string) string {
		certs, err := parseCertificates(name, one[name])
		if err != nil {
			t.Fatal(err)
		}
		return certs[0].Subject.CommonName
	}
	if common("client.crt") != "quorumd" || common("server.crt") != "" || common("peer.crt") != "n1" {
		t.Errorf("the names: %q %q %q", common("client.crt"), common("server.crt"), common("peer.crt"))
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	a, dir := newDirectory(t)
	before, err := os.ReadFile(filepath.Join(dir, caKey))
	if err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, Create(dir, today()), "nothing is overwritten")
	bundle(t, a, "n1", "10.0.0.1")
	_, err = a.Host("n1", []string{"10.0.0.9"}, today())
	mustRefuse(t, err, "n1 has certificates already")
	_, err = a.Renew("n1", nil, today())
	mustRefuse(t, err, "already created in this second")
	if err := os.WriteFile(filepath.Join(dir, "n2.tar"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = a.Host("n2", []string{"10.0.0.2"}, today())
	mustRefuse(t, err, "nothing is overwritten")
	if mine, err := os.ReadFile(filepath.Join(dir, "n2.tar")); err != nil || string(mine) != "mine" {
		t.Errorf("the file became %q, %v", mine, err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, caKey)); err != nil || !bytes.Equal(before, after) {
		t.Error("the CA's key has changed", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".quorumd-pki-*"))
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestRenewalKeepsTheNamesAndReplacesTheOldCertificates(t *testing.T) {
	t.Parallel()
	a, dir := newDirectory(t)
	p := place(t)
	first := bundle(t, a, "n1", "10.0.0.1", "n1.example.com")
	if _, err := Install(first, p, today()); err != nil {
		t.Fatal(err)
	}
	later := today().AddDate(0, 5, 0)
	second, err := a.Renew("n1", nil, later)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Install(second, p, later)
	if err != nil || !done.Renewed || done.Host != "n1" || !done.Until.Equal(later.Add(LeafDays*24*time.Hour)) {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := Install(second, p, later); err != nil || done.Renewed {
		t.Errorf("a second installation: %+v, %v", done, err)
	}
	_, err = Install(first, p, later)
	mustRefuse(t, err, "older than the certificates of this host")
	certs, err := readCertificates(filepath.Join(p.Dir, "server.crt"))
	if err != nil || !slices.Contains(certs[0].DNSNames, "n1.example.com") || len(certs[0].IPAddresses) != 3 {
		t.Errorf("%v %v", certs, err)
	}
	all, err := Inspect(dir, later)
	if err != nil || len(all) != 5 || all[0].Days != LeafDays || all[0].What != "etcd server of n1" ||
		!slices.Equal(all[0].Names, []string{"10.0.0.1", "n1", "n1.example.com"}) {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := a.Renew("n9", nil, later); err == nil {
		t.Error("an unknown host was renewed")
	}
}

func TestKeysAreReadableOnlyByTheirOwners(t *testing.T) {
	t.Parallel()
	a, dir := newDirectory(t)
	path, p := bundle(t, a, "n1", "10.0.0.1"), place(t)
	if _, err := Install(path, p, today()); err != nil {
		t.Fatal(err)
	}
	for file, mode := range map[string]os.FileMode{
		dir: 0o700 | os.ModeDir, filepath.Join(dir, caKey): 0o600, path: 0o600,
		filepath.Join(p.Dir, "server.key"): 0o600, filepath.Join(p.Dir, "client.key"): 0o600,
		filepath.Join(p.Dir, "server.crt"): 0o644,
	} {
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v, want %v", file, info.Mode(), err, mode)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := Install(path, place(t), today())
	mustRefuse(t, err, "other users may have read the keys")
	_, err = Install(path+".none", place(t), today())
	mustRefuse(t, err, "there is no "+path+".none")
	if err := os.Chmod(filepath.Join(dir, caKey), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, today())
	mustRefuse(t, err, "anyone who can read it can issue certificates")
}

// testUsers returns the users whose files the tests accept.
func testUsers() []int { return []int{os.Geteuid()} }

func TestABundleOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	path, p := bundle(t, a, "n1", "10.0.0.1"), place(t)
	_, err := install(path, p, []int{os.Geteuid() + 1}, today())
	mustRefuse(t, err, "belongs to user ")
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("a refused bundle has left a directory")
	}
	if _, err := install(path, p, testUsers(), today()); err != nil {
		t.Error(err)
	}
}

func TestBundleWithOtherFingerprintsIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	stranger, _ := newDirectory(t)
	path, p := bundle(t, a, "n1", "10.0.0.1"), place(t)
	cas := a.CAs()
	if len(cas) != 2 || cas[0].File != caCert || cas[1].File != peerCACert || cas[0] == cas[1] {
		t.Fatalf("%+v", cas)
	}
	for _, given := range [][]string{
		{stranger.CAs()[0].Fingerprint, stranger.CAs()[1].Fingerprint},
		{cas[0].Fingerprint},
		{cas[1].Fingerprint},
		{""},
	} {
		p.Fingerprints = given
		_, err := Install(path, p, today())
		mustRefuse(t, err, "which --fingerprint does not list")
	}
	p.Fingerprints = []string{strings.ToLower(cas[1].Fingerprint), strings.ReplaceAll(cas[0].Fingerprint, ":", "")}
	done, err := Install(path, p, today())
	if err != nil || !slices.Equal(done.CAs, cas) {
		t.Errorf("%+v %v", done, err)
	}
}

func TestCertificatesHaveTheRequestedLifetime(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	for name, days := range map[string]int{"n1": 0, "n2": 7, "n3": MaxLeafDays} {
		a.Days = days
		f, err := readBundle(bundle(t, a, name, "10.0.0.1"), testUsers())
		if err != nil {
			t.Fatal(err)
		}
		if days == 0 {
			days = LeafDays
		}
		for _, l := range leaves() {
			certs, err := parseCertificates(l.name, f[l.name+".crt"])
			if err != nil || !certs[0].NotAfter.Equal(today().AddDate(0, 0, days)) {
				t.Errorf("%s of %s: %v %v", l.name, name, certs, err)
			}
		}
	}
	for _, days := range []int{-1, MaxLeafDays + 1} {
		a.Days = days
		_, err := a.Host("n9", []string{"10.0.0.1"}, today())
		mustRefuse(t, err, "cannot be valid for")
	}
}

func TestBundleOfAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	other, _ := newDirectory(t)
	p := place(t)
	p.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")}
	_, err := Install(bundle(t, a, "n2", "10.0.0.2"), p, today())
	mustRefuse(t, err, "for n2 at 10.0.0.2, but this host has no such address")
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("a refused bundle has left a directory")
	}
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	_, err = Install(bundle(t, a, "n5", "10.0.0.1"), p, today())
	mustRefuse(t, err, "this host has the certificates of n1")
	_, err = Install(bundle(t, other, "n1", "10.0.0.1"), p, today())
	mustRefuse(t, err, "trusts a different CA")
}

func TestCAThatTheOperatorAddedSurvivesARenewal(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	next, _ := newDirectory(t)
	p := place(t)
	if _, err := Install(bundle(t, a, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	both := map[string][]byte{}
	for _, file := range caFiles() {
		both[file] = slices.Concat(a.of(file).pem, next.of(file).pem)
		if err := os.WriteFile(filepath.Join(p.Dir, file), both[file], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Install(bundle(t, next, "n1", "10.0.0.1"), p, today()); err != nil {
		t.Fatal(err)
	}
	for file, want := range both {
		if now, err := os.ReadFile(filepath.Join(p.Dir, file)); err != nil || !bytes.Equal(now, want) {
			t.Errorf("%s has changed: %v", file, err)
		}
	}
}

func TestWrongClockIsReported(t *testing.T) {
	t.Parallel()
	a, dir := newDirectory(t)
	path := bundle(t, a, "n1", "10.0.0.1")
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{today().Add(-2 * time.Hour), "server.crt is valid from 2030-03-01 11:00:00Z; this machine's clock says"},
		{
			today().AddDate(0, 0, 181),
			"server.crt expired on 2030-08-28 12:00:00Z; this machine's clock says 2030-08-29",
		},
	} {
		_, err := Install(path, place(t), c.now)
		mustRefuse(t, err, c.want)
	}
	if _, err := Install(path, place(t), today().Add(-time.Hour)); err != nil {
		t.Errorf("a clock that is an hour behind: %v", err)
	}
	_, err := Open(dir, today().AddDate(-1, 0, 0))
	mustRefuse(t, err, "the certificate in ca.crt is valid from")
	old, err := Open(dir, today().AddDate(9, 11, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Renew("n1", nil, today().AddDate(9, 11, 0)); err != nil {
		t.Fatal(err)
	}
	if all, err := Inspect(dir, today()); err != nil || !all[0].Until.Equal(today().AddDate(10, 0, 0)) {
		t.Errorf("a leaf outlives its CA: %v %v", all, err)
	}
}

func TestInvalidNamesAndAddressesAreRefused(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	for _, c := range [][]string{
		{"../n1", "10.0.0.1"},
		{"", "10.0.0.1"},
		{"-n", "10.0.0.1"},
		{strings.Repeat("n", 65), "10.0.0.1"},
		{"n1"},
		{"root", "10.0.0.1"}, // etcd's superuser
		{"Root", "10.0.0.1"},
		{"quorumd", "10.0.0.1"},
		{"n1", "10.0.0.1:2380"},
		{"n1", "https://n1"},
		{"n1", "0.0.0.0"},
		{"n1", "10.0.0.256"},
		{"n1", "*.example.com"},
		{"n1", "224.0.0.1"},
		{"n1", "fe80::1%eth0"},
		{"n1", ""},
		{"n1\n", "10.0.0.1"},
	} {
		_, err := a.Host(c[0], c[1:], today())
		mustRefuse(t, err, "")
	}
	if names, err := a.Hosts(); err != nil || len(names) > 0 {
		t.Errorf("%v %v", names, err)
	}
}

func TestModifiedBundleInstallsNothing(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	stranger, _ := newDirectory(t)
	good, err := readBundle(bundle(t, a, "n1", "10.0.0.1"), testUsers())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := readBundle(bundle(t, stranger, "n1", "10.0.0.1"), testUsers())
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, data []byte) []byte {
		changed := files{}
		for n, d := range good {
			changed[n] = d
		}
		changed[name] = data
		packed, err := changed.pack(fileNames(), today())
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	clientAsServer := files{}
	for n, d := range good {
		clientAsServer[n] = d
	}
	clientAsServer["server.crt"], clientAsServer["server.key"] = good["client.crt"], good["client.key"]
	wrongUsage, err := clientAsServer.pack(fileNames(), today())
	if err != nil {
		t.Fatal(err)
	}
	entry := func(h tar.Header) []byte { return archive(t, h) }
	whole := with("ca.crt", good["ca.crt"])
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"a foreign key":   {with("peer.key", foreign["peer.key"]), "peer.crt does not match peer.key"},
		"other clients":   {with("ca.crt", foreign["ca.crt"]), "server.crt cannot be used"},
		"other peers":     {with("peer-ca.crt", foreign["peer-ca.crt"]), "peer.crt cannot be used"},
		"one CA for both": {with("peer-ca.crt", good["ca.crt"]), "peer.crt cannot be used"},
		"missing usage":   {wrongUsage, "server.crt cannot be used: certificate specifies"},
		"no certificate":  {with("ca.crt", []byte("hello")), "contains no certificate"},
		"half of it":      {whole[:len(whole)/2], "is not a bundle"},
		"nothing":         {nil, "ca.crt is missing"},
		"no tar":          {bytes.Repeat([]byte("x"), 4096), "is not a bundle"},
		"a link":          {entry(tar.Header{Name: "ca.crt", Typeflag: tar.TypeSymlink}), "unexpected entry"},
		"a path":          {entry(tar.Header{Name: "../ca.crt", Typeflag: tar.TypeReg}), "unexpected entry"},
		"a bomb": {
			entry(tar.Header{Name: "ca.crt", Typeflag: tar.TypeReg, Size: 1 << 17}), "unexpected entry",
		},
	} {
		path, p := filepath.Join(t.TempDir(), "b.tar"), place(t)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Install(path, p, today())
		if err == nil {
			t.Errorf("%s was installed", what)
			continue
		}
		mustRefuse(t, err, c.want)
		if _, err := os.Stat(p.Dir); err == nil {
			t.Errorf("%s has left files", what)
		}
	}
}

// archive returns a tar with one entry.
func archive(t *testing.T, h tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, h.Size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBundleIsACompleteArchive(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	data, err := os.ReadFile(bundle(t, a, "n1", "10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	if end := make([]byte, 1024); len(data)%512 != 0 || !bytes.HasSuffix(data, end) {
		t.Errorf("the bundle has %d bytes and does not end with two empty blocks", len(data))
	}
}

func TestDirectoryWritableByOthersGetsNoKeys(t *testing.T) {
	t.Parallel()
	a, _ := newDirectory(t)
	p := place(t)
	if err := os.Mkdir(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := bundle(t, a, "n1", "10.0.0.1")
	_, err := Install(path, p, today())
	mustRefuse(t, err, "must be a directory that belongs to you")
	link := filepath.Join(t.TempDir(), "link.tar")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(link, place(t), today()); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link was followed: %v", err)
	}
}

// handshake connects a client and a server over a pipe.
func handshake(client, server *tls.Config) error {
	c, s := net.Pipe()
	defer c.Close()
	defer s.Close()
	failed := make(chan error, 1)
	go func() {
		conn := tls.Server(s, server)
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		failed <- errors.Join(err, s.Close())
	}()
	conn := tls.Client(c, client)
	_, err := io.ReadFull(conn, make([]byte, 1))
	c.Close()
	return errors.Join(err, <-failed)
}
