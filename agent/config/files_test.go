// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pki writes keys and certificates into a directory of its own.
type pki struct {
	t   *testing.T
	dir string
}

func newPKI(t *testing.T) pki { return pki{t: t, dir: t.TempDir()} }

func (p pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p pki) write(name string, data []byte) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), data, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.path(name)
}

// pair writes name.crt and name.key, valid from one year until another.
func (p pki) pair(name string, from, until int, usage ...x509.ExtKeyUsage) (cert, key string) {
	p.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: usage,
		NotBefore: time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(until, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		p.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		p.t.Fatal(err)
	}
	cert = p.write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key = p.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return cert, key
}

func (p pki) read(path string) []byte {
	p.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// named returns a host with an ID, because not every machine has /etc/machine-id.
func named() Host { return Host{ID: "n1"} }

func with(t TLS, webConfig string) Config {
	return Config{Host: named(), Cluster: Cluster{TLS: &t}, Metrics: Metrics{WebConfig: webConfig}}
}

func TestGoodFilesAreAccepted(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cert, key := p.pair("client", 2000, 2999, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	plain, plainKey := p.pair("plain", 2000, 2999)
	old, _ := p.pair("old", 2000, 2001)
	bundle := p.write("bundle.crt", append(p.read(old), p.read(cert)...))
	web := p.write("web.yaml", nil)
	both := p.write("both.pem", append(p.read(cert), p.read(key)...))
	for name, c := range map[string]Config{
		"no TLS":                          {Host: named()},
		"the system's CAs":                with(TLS{}, ""),
		"a CA only":                       with(TLS{CA: cert}, ""),
		"all":                             with(TLS{CA: cert, Cert: cert, Key: key}, web),
		"an expired and a valid CA":       with(TLS{CA: bundle}, ""),
		"a certificate for every use":     with(TLS{Cert: plain, Key: plainKey}, ""),
		"certificate and key in one file": with(TLS{Cert: both, Key: both}, ""),
	} {
		if err := c.CheckFiles(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllBadFilesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cert, key := p.pair("client", 2000, 2999)
	_, otherKey := p.pair("other", 2000, 2999)
	expired, expiredKey := p.pair("expired", 2000, 2001)
	future, futureKey := p.pair("future", 2998, 2999)
	server, serverKey := p.pair("server", 2000, 2999, x509.ExtKeyUsageServerAuth)
	text := p.write("text", []byte("not PEM\n"))
	damaged := p.write("damaged.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	damagedKey := p.write("damaged.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	encrypted := p.write("encrypted.key", pem.EncodeToMemory(&pem.Block{
		Type:  "ENCRYPTED PRIVATE KEY",
		Bytes: []byte("x"),
	}))
	encryptedOld := p.write("encrypted-old.key", pem.EncodeToMemory(&pem.Block{
		Type:    "RSA PRIVATE KEY",
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: []byte("x"),
	}))
	large := p.write("large.crt", make([]byte, MaxFileSize+1))
	if err := unix.Mkfifo(p.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		c    Config
	}{
		{"missing", with(TLS{CA: p.path("a"), Cert: p.path("b"), Key: p.path("c")}, p.path("d"))},
		{
			"a directory, a pipe that would block, and too large",
			with(TLS{CA: large, Cert: p.dir, Key: p.path("pipe")}, p.path("pipe")),
		},
		{"not PEM", with(TLS{CA: text, Cert: text, Key: text}, "")},
		{"swapped", with(TLS{CA: key, Cert: key, Key: cert}, "")},
		{"of another pair", with(TLS{Cert: cert, Key: otherKey}, "")},
		{"expired", with(TLS{CA: expired, Cert: expired, Key: expiredKey}, "")},
		{"expired and of another pair", with(TLS{Cert: expired, Key: key}, "")},
		{"not valid yet", with(TLS{CA: future, Cert: future, Key: futureKey}, "")},
		{"for servers only", with(TLS{Cert: server, Key: serverKey}, "")},
		{"damaged", with(TLS{CA: damaged, Cert: damaged, Key: damagedKey}, "")},
		{"damaged key", with(TLS{Cert: cert, Key: damagedKey}, "")},
		{"encrypted", with(TLS{Cert: cert, Key: encrypted}, "")},
		{"encrypted in the old way", with(TLS{Cert: cert, Key: encryptedOld}, "")},
	}
	var got strings.Builder
	for _, c := range cases {
		err := c.c.CheckFiles()
		if _, ok := errors.AsType[Errors](err); !ok {
			t.Errorf("%s: the error is %T (%v), not Errors", c.name, err, err)
			continue
		}
		got.WriteString("== " + c.name + "\n" + strings.ReplaceAll(err.Error(), p.dir, "DIR") + "\n")
	}
	golden(t, "testdata/files.golden", got.String())
}

func TestUnreadableFileIsReported(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	cert, _ := p.pair("client", 2000, 2999)
	if err := os.Chmod(cert, 0); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		// Root may read every file, so this thread drops the privilege. The thread ends with the goroutine that is
		// locked to it.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_, _ = unix.SetfsuidRetUid(1)
		}
		result <- with(TLS{CA: cert}, "").CheckFiles()
	}()
	want := "cluster.tls.ca: " + cert +
		" cannot be read: permission denied; let the user that runs quorumd read it and enter the directories above it"
	if err := <-result; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestPasswordFileIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		mode       os.FileMode
	}{
		"as required":           {"secret\n", "", 0o400},
		"its group may read it": {"secret\n", "chmod 0400", 0o640},
		"empty":                 {"", "on one line", 0o400},
		"with two lines":        {"a\nb\n", "on one line", 0o400},
	} {
		path := newPKI(t).write("password", []byte(c.text))
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		err := Config{Host: named(), Etcd: Etcd{PasswordFile: path}}.CheckFiles()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := (Config{Etcd: Etcd{PasswordFile: "/nowhere/password"}}).CheckFiles(); err == nil ||
		!strings.Contains(err.Error(), "etcd.passwordFile") {
		t.Errorf("a missing file: %v", err)
	}
}
