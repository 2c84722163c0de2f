// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func newCA(t *testing.T) *testbed.CA {
	t.Helper()
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issue(t *testing.T, ca *testbed.CA, name string) testbed.CertFiles {
	t.Helper()
	files, err := ca.Issue(name, testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// handshake connects a client to a server that requires a client certificate, and returns the result of each side.
func handshake(t *testing.T, client, server testbed.CertFiles) (clientErr, serverErr error) {
	t.Helper()
	serverConfig, err := server.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	serverConfig.ClientCAs, serverConfig.ClientAuth = serverConfig.RootCAs, tls.RequireAndVerifyClientCert
	clientConfig, err := client.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	clientConfig.ServerName = "127.0.0.1"
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	done := make(chan error, 1)
	go func() {
		err := tls.Server(far, serverConfig).HandshakeContext(t.Context())
		if err != nil {
			far.Close()
		}
		done <- err
	}()
	conn := tls.Client(near, clientConfig)
	clientErr = conn.HandshakeContext(t.Context())
	if clientErr != nil {
		near.Close()
	} else {
		go func() { _, _ = conn.Read(make([]byte, 1)) }() // reads the session ticket, or the refusal
	}
	return clientErr, <-done
}

func TestGoodCertificatesAreAcceptedAndBadOnesRefusedForTheirFaults(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	good := issue(t, ca, "good")
	for _, c := range []struct {
		fault string
		make  func(string) (testbed.CertFiles, error)
		says  string // error of a client if the server uses the certificate
	}{
		{"expired", ca.Expired, "certificate has expired"},
		{"wrong-san", ca.WrongSAN, "not 127.0.0.1"},
		{"wrong-ca", ca.WrongCA, "signed by unknown authority"},
	} {
		bad, err := c.make(c.fault)
		if err != nil {
			t.Fatal(err)
		}
		if clientErr, _ := handshake(t, good, bad); clientErr == nil || !strings.Contains(clientErr.Error(), c.says) {
			t.Errorf("server with %s: the client returns %v, want %q", c.fault, clientErr, c.says)
		}
		_, serverErr := handshake(t, bad, good)
		// by default a server does not check a client's addresses
		if refused := serverErr != nil; refused != (c.fault != "wrong-san") {
			t.Errorf("client with %s: the server returns %v", c.fault, serverErr)
		}
	}
	if clientErr, serverErr := handshake(t, good, good); clientErr != nil || serverErr != nil {
		t.Errorf("good certificates: %v, %v", clientErr, serverErr)
	}
}

func TestIssuingAgainRenewsTheSameFiles(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	load := func(files testbed.CertFiles) string {
		config, err := files.ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		return config.Certificates[0].Leaf.SerialNumber.String()
	}
	first := issue(t, ca, "n1")
	before := load(first)
	second := issue(t, ca, "n1")
	if first != second || load(second) == before {
		t.Errorf("renewed %v with serial %s to %v with serial %s", first, before, second, load(second))
	}
}
