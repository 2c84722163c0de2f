// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// issue returns a certificate that is valid between two times, with its key.
func issue(t testing.TB, from, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// file writes certificates to a file.
func file(t testing.TB, certs ...tls.Certificate) string {
	t.Helper()
	var text bytes.Buffer
	for _, c := range certs {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "some.crt")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func noTLS() *tls.Config { return nil }

// now returns a time that certificates can hold: a whole second.
func now() time.Time { return time.Now().Truncate(time.Second) }

func TestTheFirstExpiryOfAChainCountsAndTheLastOfCAs(t *testing.T) {
	t.Parallel()
	at := now()
	soon, late := issue(t, at.Add(-day), at.Add(day)), issue(t, at.Add(-day), at.Add(9*day))
	path := file(t, late, soon)
	for what, c := range map[string]struct {
		files Files
		left  time.Duration
	}{
		"a chain":     {Files{Chains: []string{path, path, ""}}, day},
		"authorities": {Files{Authorities: []string{path}}, 9 * day},
	} {
		got := New(c.files, noTLS, func() time.Time { return at }).Read(t.Context(), nil)
		if !got.Known || len(got.All) != 1 || got.All[0].Name != path || got.All[0].Left != c.left ||
			!got.All[0].Until.Equal(at.Add(c.left)) || got.All[0].Life != c.left+day {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}

func TestASubjectIsCleanedAndShortened(t *testing.T) {
	t.Parallel()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: "n1\x1b[2J" + strings.Repeat("x", 200)}}
	if got := subject(c); !strings.HasPrefix(got, "CN=n1?[2Jxx") || len([]rune(got)) != mostSubject+1 {
		t.Errorf("the subject is %q", got)
	}
}

func TestUnreadableFilesAreLeftOutAndNoneAtAllIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long, key := filepath.Join(dir, "long"), filepath.Join(dir, "key")
	for path, text := range map[string][]byte{
		long: bytes.Repeat([]byte("x"), mostBytes+1),
		key:  []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := Files{Chains: []string{long, key, dir, filepath.Join(dir, "none")}, Authorities: []string{key}}
	got := New(files, noTLS, now).Read(t.Context(), []string{"http://127.0.0.1:1", "https://127.0.0.1:1", "::"})
	if got.Known || got.Absent == "" || len(got.All) > 0 {
		t.Errorf("got %+v", got)
	}
}

// serving presents a certificate to every client. If it wants client certificates, it disconnects clients without one.
func serving(t *testing.T, shows tls.Certificate, wants tls.ClientAuthType) (url string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{shows}, ClientAuth: wants,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return "https://" + listener.Addr().String()
}

func TestPresentedCertificatesAreReadEvenIfExpiredOrTheMemberRefusesUs(t *testing.T) {
	t.Parallel()
	at := now()
	well, ended := issue(t, at.Add(-day), at.Add(90*day)), issue(t, at.Add(-9*day), at.Add(-day))
	urls := []string{
		serving(t, well, tls.NoClientCert), serving(t, ended, tls.RequireAnyClientCert), "https://127.0.0.1:1",
	}
	r := New(Files{}, func() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} },
		func() time.Time { return at })
	got := r.Read(t.Context(), append(urls, urls...))
	left := map[string]time.Duration{}
	for _, c := range got.All {
		left["https://"+c.Name] = c.Left
	}
	if len(got.All) != 2 || left[urls[0]] != 90*day || left[urls[1]] != -day {
		t.Errorf("got %+v", got)
	}
}

func TestPeerCertificatesAreReadIfClientsUseNoTLS(t *testing.T) {
	t.Parallel()
	at := now()
	one := issue(t, at.Add(-day), at.Add(2*day))
	urls := []string{"http://127.0.0.1:1", serving(t, one, tls.RequireAnyClientCert), serving(t, one, tls.NoClientCert)}
	got := New(Files{}, noTLS, func() time.Time { return at }).Read(t.Context(), urls)
	// The host presents the same certificate at two ports.
	if len(got.All) != 1 || got.All[0].Left != 2*day || got.All[0].Of != health.HolderMember {
		t.Errorf("got %+v", got)
	}
}

func TestASilentMemberDelaysAReadingUntilItsDeadline(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r := New(Files{}, func() *tls.Config { return &tls.Config{} }, now)
	began := time.Now()
	if got := r.Read(ctx, []string{"https://" + listener.Addr().String()}); got.Known {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func FuzzAFileOfCertificates(f *testing.F) {
	at := now()
	text, err := os.ReadFile(file(f, issue(f, at, at.Add(day)), issue(f, at, at)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, c := range inPEM(text) {
			one := named(health.HolderOwn, "it", c, at)
			if one.Name != "it" || one.Until.IsZero() != c.NotAfter.IsZero() {
				t.Errorf("%+v", one)
			}
		}
	})
}
