// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// member starts a server that acts like a port of etcd, with a host's certificate and these trusted CAs.
func member(t *testing.T, a *Directory, set func(*tls.Config), trusted ...signer) string {
	t.Helper()
	made, err := a.issue("n1", sans{ips: []net.IP{net.IPv4(127, 0, 0, 1)}}, today())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(made["peer.crt"], made["peer.key"])
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.Host
		fmt.Fprintf(w, `[{"id":1,"name":"n1","peerURLs":["https://%s"],"clientURLs":["http://%s"]}]`, at, at)
	}))
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c.cert)
	}
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, Time: today,
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if set != nil {
		set(s.TLS)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

func TestCheckReportsCertificateAndAcceptedCAsOfAPort(t *testing.T) {
	t.Parallel()
	a, _ := advanced(t, stepBoth)
	r := a.rotation
	l, err := a.newTrustCheck(today())
	if err != nil {
		t.Fatal(err)
	}
	byNew := &Directory{cas: r.next, trusted: files{}}
	stranger, _ := newDirectory(t)
	old := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	open := func(c *tls.Config) { c.ClientAuth = tls.NoClientCert }
	for what, c := range map[string]struct {
		at       string
		shows    string
		old, new Answer
		why      string
	}{
		"old alone":     {member(t, a, nil, r.old.peers), ByOld, Accepts, Refuses, ""},
		"both":          {member(t, a, nil, r.old.peers, r.next.peers), ByOld, Accepts, Accepts, ""},
		"new alone":     {member(t, byNew, nil, r.next.peers), ByNew, Refuses, Accepts, ""},
		"TLS 1.2":       {member(t, byNew, old, r.next.peers), ByNew, Refuses, Accepts, ""},
		"neither":       {member(t, stranger, nil, stranger.peers), ByOther, Refuses, Refuses, ""},
		"asks for none": {member(t, a, open), ByOld, Unknown, Unknown, "asks for no"},
		"not listening": {"127.0.0.1:1", "", Unknown, Unknown, "refused"},
	} {
		p := Port{URL: "https://" + c.at, For: "peer", Old: Unknown, New: Unknown}
		l.port(t.Context(), &p)
		if p.Shows != c.shows || p.Old != c.old || p.New != c.new || !strings.Contains(p.Why, c.why) {
			t.Errorf("%s: %+v", what, p)
		}
	}
	elsewhere := strings.Replace(member(t, a, nil, r.old.peers), "127.0.0.1", "localhost", 1)
	p := Port{URL: "https://" + elsewhere, For: "peer"}
	if l.port(t.Context(), &p); p.Shows != ByOther {
		t.Errorf("a certificate for another name: %+v", p)
	}
	p = Port{URL: "http://" + elsewhere}
	if l.port(t.Context(), &p); p.Shows != "" || p.Why != "its URL is not https" {
		t.Errorf("%+v", p)
	}
}

func TestMembersComeFromTheListOfAnyHost(t *testing.T) {
	t.Parallel()
	a, _ := advanced(t, stepBoth)
	at := member(t, a, nil, a.rotation.old.peers)
	ports, err := a.CheckTrust(t.Context(), []string{"127.0.0.1:1", at, at}, today())
	if err != nil || len(ports) != 2 || ports[1].Host != "n1" || ports[1].Old != Accepts {
		t.Errorf("%+v %v", ports, err)
	}
	_, err = a.CheckTrust(t.Context(), []string{"127.0.0.1:1"}, today())
	mustRefuse(t, err, "no member returned the member list: 127.0.0.1:1")
	quiet, _ := newDirectory(t)
	if ports, err := quiet.CheckTrust(t.Context(), nil, today()); err != nil || len(ports) > 0 {
		t.Errorf("without a rotation: %v %v", ports, err)
	}
}
