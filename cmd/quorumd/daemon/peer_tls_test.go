// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// The service can read the key, but only the agent can use the network.
func TestTheRunAsServiceRequestsAVersionWithThePeerCertificate(t *testing.T) {
	t.Parallel()
	d := newTestHost(t)
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, err1 := ca.Issue("own", testbed.CertOptions{})
	theirs, err2 := ca.Issue("theirs", testbed.CertOptions{})
	conf, err3 := theirs.ClientConfig()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	conf.ClientCAs, conf.ClientAuth = conf.RootCAs, tls.RequireAndVerifyClientCert
	member := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"etcdserver":"3.6.0"}`)
	}))
	member.TLS = conf
	member.StartTLS()
	t.Cleanup(member.Close)

	path := filepath.Join(d.configs, "quorumd.yaml")
	d.configure("observe", "etcd@x.service")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d.write(path, strings.Replace(string(text), "{ETCD_LOG_LEVEL: warn}", fmt.Sprintf("{ETCD_PEER_CERT_FILE: %s, "+
		"ETCD_PEER_KEY_FILE: %s, ETCD_PEER_TRUSTED_CA_FILE: %s}", own.Cert, own.Key, own.CA), 1))
	opt := Options{Config: path, RunAs: testbed.AcceptYes(t, runAsIn, d.dir)}
	tester := peerTLS(d.config(), opt)
	if err := tester.Request(t.Context(), member.URL); err != nil {
		t.Error(err)
	}
	if err := tester.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "is not valid for n1") {
		t.Error(err)
	}
	other := d.config()
	other.Etcd.Environment["ETCD_PEER_KEY_FILE"] = theirs.Key
	if err := peerTLS(other, opt).Request(t.Context(), member.URL); err == nil ||
		!strings.Contains(err.Error(), "not allowed") {
		t.Error(err)
	}
	delete(other.Etcd.Environment, "ETCD_PEER_KEY_FILE")
	if peerTLS(other, opt) != nil {
		t.Error("a certificate without a key counts as configured")
	}
}
