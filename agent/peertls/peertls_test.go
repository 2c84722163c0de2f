// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package peertls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMain also acts as the child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if Main(os.Args[2:], os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func files(f testbed.CertFiles) config.PeerFiles {
	return config.PeerFiles{Cert: f.Cert, Key: f.Key, CA: f.CA}
}

func tester(f testbed.CertFiles) Tester {
	return Tester{Command: []string{"/proc/self/exe"}, Files: files(f), PeerURL: "https://127.0.0.1:2380", Host: "n1"}
}

// answersVersion simulates the path /version of etcd's peer listener.
func answersVersion(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		fmt.Fprint(w, `{"etcdserver":"3.6.0"}`)
		return
	}
	http.NotFound(w, r)
}

// member starts a peer listener that requires client certificates from the CA. If refuses is true, it closes each
// connection after the handshake, as etcd does when it refuses a certificate.
func member(t *testing.T, f testbed.CertFiles, refuses bool, handler http.HandlerFunc) (url string) {
	t.Helper()
	conf, err := f.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	conf.ClientCAs, conf.ClientAuth = conf.RootCAs, tls.RequireAndVerifyClientCert
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	if refuses {
		server.ConnState = func(c net.Conn, s http.ConnState) {
			if secured, is := c.(*tls.Conn); is && s == http.StateNew {
				_ = secured.Handshake()
				_ = c.Close()
			}
		}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(tls.NewListener(inner, conf)) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return "https://" + inner.Addr().String()
}

func newCA(t *testing.T) (*testbed.CA, func(testbed.CertFiles, error) testbed.CertFiles) {
	t.Helper()
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return ca, func(f testbed.CertFiles, err error) testbed.CertFiles {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

func TestARequestSucceedsOnlyIfEtcdAnswersIt(t *testing.T) {
	t.Parallel()
	ca, must := newCA(t)
	own, theirs := must(ca.Issue("own", testbed.CertOptions{})), must(ca.Issue("theirs", testbed.CertOptions{}))
	noKey := own
	noKey.Key += ".none"
	plain := httptest.NewServer(http.HandlerFunc(answersVersion))
	defer plain.Close()
	empty := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	for name, c := range map[string]struct {
		url  string
		own  testbed.CertFiles
		want string // part of the error; empty for an answer
	}{
		"etcd answers": {member(t, theirs, false, answersVersion), own, ""},
		"it refuses after the handshake": {
			member(t, theirs, true, answersVersion), own, "rejected connection on peer endpoint",
		},
		"it does not trust the CA": {
			member(t, theirs, false, answersVersion), must(ca.WrongCA("x")), "rejected connection",
		},
		"this host does not trust its CA": {
			member(t, must(ca.WrongCA("y")), false, answersVersion), own, "is not accepted",
		},
		"its certificate has expired": {
			member(t, must(ca.Expired("old")), false, answersVersion), own, "it is valid only from ",
		},
		"its certificate lacks the address": {
			member(t, must(ca.WrongSAN("z")), false, answersVersion), own, "is not accepted: tls",
		},
		"the key cannot be read":   {member(t, theirs, false, answersVersion), noKey, "no such file"},
		"another program answers":  {member(t, theirs, false, empty), own, "but not as etcd does"},
		"it serves http":           {strings.Replace(plain.URL, "http:", "https:", 1), own, "it does not serve https"},
		"nothing listens":          {"https://127.0.0.1:1", own, "connection refused"},
		"the answer has no bounds": {member(t, theirs, false, endless), own, "but not as etcd does"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := tester(c.own).Request(ctx, c.url)
		cancel()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheTextForAnExpiredCertificateHasNoClock(t *testing.T) {
	t.Parallel()
	ca, must := newCA(t)
	text, err := os.ReadFile(must(ca.Expired("old")).Cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	at := func(now time.Time) string {
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now})
		return failure(&tls.CertificateVerificationError{Err: err}).Error()
	}
	first, second := at(cert.NotAfter.Add(time.Second)), at(cert.NotAfter.Add(4*time.Second))
	if first != second || !strings.Contains(first, "it is valid only from "+date(cert.NotBefore)) {
		t.Errorf("%q, then %q", first, second)
	}
}

// endless answers with white space until the client disconnects.
func endless(w http.ResponseWriter, _ *http.Request) {
	space := []byte(strings.Repeat(" ", 4096))
	for {
		if _, err := w.Write(space); err != nil {
			return
		}
	}
}

func TestARequestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ca, must := newCA(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = tester(must(ca.Issue("own", testbed.CertOptions{}))).Request(ctx, "https://"+silent.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestTheFilesAreCheckedForTheAddress(t *testing.T) {
	t.Parallel()
	ca, must := newCA(t)
	for name, c := range map[string]struct {
		files testbed.CertFiles
		want  string
	}{
		"valid":           {must(ca.Issue("own", testbed.CertOptions{})), ""},
		"another address": {must(ca.WrongSAN("san")), "is not valid for 127.0.0.1, the host in etcd.peerURL"},
		"another CA":      {must(ca.WrongCA("ca")), "was not signed by a CA in"},
		"expired":         {must(ca.Expired("old")), "expired"},
	} {
		err := tester(c.files).Check(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestOnlyTheConfiguredFilesAreAllowed(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Etcd.TLS = &config.EtcdTLS{PeerCert: "/c", PeerKey: "/k", PeerCA: "/ca"}
	for args, want := range map[string]bool{
		"peer-tls request /c /k /ca n2":    true,
		"peer-tls check /c /k /ca n1 n1":   true,
		"peer-tls request /c /other /ca h": false,
		"peer-tls request /c /k /ca h h":   false,
		"peer-tls check /c /k /ca h":       false,
		"peer-tls other /c /k /ca h":       false,
		"peer-tls request":                 false,
	} {
		if got := Allowed(strings.Fields(args), c); got != want {
			t.Errorf("%s: %v", args, got)
		}
	}
	if Allowed([]string{"peer-tls", "request", "", "", "", "n2"}, config.Config{}) {
		t.Error("without configured files, a request is allowed")
	}
}

func TestTheRelayIsLimited(t *testing.T) {
	t.Parallel()
	own, theirs, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	from, to := net.Pipe()
	go func() { defer to.Close(); _, _ = to.Write(make([]byte, 2*maxRelayed)) }()
	go func() { relay(own, from); own.Close(); from.Close() }()
	if n, err := io.Copy(io.Discard, theirs); n != maxRelayed || err != nil {
		t.Errorf("%d bytes were relayed, %v", n, err)
	}
}
