// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

// userCertificate returns a client certificate for an etcd user, signed by the CA in the directory of quorumctl pki.
func userCertificate(t *testing.T, dir, user string) tls.Certificate {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca.Leaf, &key.PublicKey, ca.PrivateKey)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// request sends a request with a certificate and returns the response of the port.
func request(url string, shown tls.Certificate) (string, error) {
	web := &http.Client{Timeout: callTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify:   true, // an attacker does not care which server answers
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil },
		},
	}}
	answer, err := web.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return string(text), err
}

// The peer port accepts Raft messages and lists members, and etcd's authentication does not protect it.
func TestThePeerPortRefusesEveryCertificateButAMembers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	must(t, pki.Create(dir, time.Now(), "127.0.0.0/8", "n1")) // etcd accepts a CA with name constraints
	authority, err := pki.Open(dir, time.Now())
	must(t, err)
	w, _ := certified(t, authority, worldOptions{hosts: 1, voters: 1})
	w.start()
	w.bootstrap()
	w.verify(1, 0)
	n1 := w.hosts[0]
	load := func(name string) tls.Certificate {
		in := filepath.Join(filepath.Dir(n1.files.CA), name)
		pair, err := tls.LoadX509KeyPair(in+".crt", in+".key")
		must(t, err)
		return pair
	}
	client, alice := load("client"), userCertificate(t, dir, "alice")
	members := n1.Options.PeerURL + "/members"
	if text, err := request(members, load("peer")); err != nil || !strings.Contains(text, `"peerURLs"`) {
		t.Errorf("a member's certificate: %v: %q", err, text)
	}
	for who, shown := range map[string]tls.Certificate{
		"quorumd's": client, "a user's of etcd": alice, "etcd's for clients": load("server"),
	} {
		if text, err := request(members, shown); err == nil {
			t.Errorf("the peer port answers a client with %s certificate: %q", who, text)
		}
		if _, err := request(n1.Options.ClientURL+"/version", shown); err != nil {
			t.Errorf("the client port refuses %s certificate: %v", who, err)
		}
	}
	if _, err := request(n1.Options.ClientURL+"/version", load("peer")); err == nil {
		t.Error("the client port answers a client with a member's certificate, as the user of that name")
	}
}
