// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
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

// files returns an issued certificate in the form of the client's options.
func files(t *testing.T) func(testbed.CertFiles, error) cluster.TLSFiles {
	return func(f testbed.CertFiles, err error) cluster.TLSFiles {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return cluster.TLSFiles{Use: true, CA: f.CA, Cert: f.Cert, Key: f.Key}
	}
}

// secured runs a member that requires client certificates from the given CA.
func secured(t *testing.T, ca *testbed.CA) (url string) {
	t.Helper()
	server, err := ca.Issue("server", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := quick()
	o.TLS = &server
	return testbed.StartCluster(t, 1, o).Endpoints()[0]
}

func connectTLS(t *testing.T, url string, f cluster.TLSFiles) *cluster.Client {
	t.Helper()
	return connectWith(t, cluster.Options{Endpoints: []string{url}, TLS: f, CallTimeout: time.Second})
}

func TestAnAcceptedCertificatePermitsEveryCall(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	url := secured(t, ca)
	c := connectTLS(t, url, files(t)(ca.Issue("client", testbed.CertOptions{})))
	list := members(t, c)
	for id, s := range c.Statuses(within(t), list.Members) {
		if s.Err != nil || !s.Linearizable {
			t.Errorf("%x: %+v", id, s)
		}
	}
	if offset, err := c.ClockOffset(within(t), time.Now); err != nil || offset.Abs() > 2*time.Second {
		t.Errorf("the clock: %v, %v", offset, err)
	}
	if err := c.Diagnose(within(t), url); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}

// replace replaces a certificate and its key with others.
func replace(t *testing.T, place, with cluster.TLSFiles) {
	t.Helper()
	for _, pair := range [][2]string{{with.Cert, place.Cert}, {with.Key, place.Key}} {
		if err := os.Rename(pair[0], pair[1]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplacedFilesAreUsedAfterAReload(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	url := secured(t, ca)
	place := files(t)(ca.WrongCA("client"))
	c := connectTLS(t, url, place)
	if _, err := c.Members(within(t)); !errors.Is(err, cluster.ErrUnreachable) {
		t.Fatalf("with a certificate from another CA: %v", err)
	}

	replace(t, place, files(t)(ca.Issue("renewed", testbed.CertOptions{})))
	if _, err := c.Members(within(t)); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("before the reload: %v", err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Members(within(t)); err != nil {
		t.Errorf("after the reload: %v", err)
	}

	replace(t, place, files(t)(ca.WrongCA("foreign")))
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Members(within(t)); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("an old connection is still in use after a reload: %v", err)
	}
}

func TestAReloadOfTheSameFilesKeepsTheConnections(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	proxy := testbed.NewProxy(t, strings.TrimPrefix(secured(t, ca), "https://"))
	c := connectTLS(t, "https://"+proxy.Addr(), files(t)(ca.Issue("client", testbed.CertOptions{})))
	read := func() {
		t.Helper()
		if _, err := c.Read(within(t), cluster.Span{Start: "/a", End: "/b"}); err != nil {
			t.Error(err)
		}
	}
	read()
	proxy.Set(testbed.Faults{Refuse: true}) // a new connection would fail
	if err := c.Reload(); err != nil {
		t.Error(err)
	}
	read()
}

func TestAReloadInTheMiddleOfARenewalKeepsTheOldFiles(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	url := secured(t, ca)
	place, renewed := files(t)(ca.Issue("client", testbed.CertOptions{})),
		files(t)(ca.Issue("renewed", testbed.CertOptions{}))
	c := connectTLS(t, url, place)
	reload := func(want string) {
		t.Helper()
		err := c.Reload()
		if want == "" && err != nil || want != "" && !contains(err, want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := c.Members(within(t)); err != nil {
			t.Errorf("after a reload that returned %v: %v", err, err)
		}
	}
	reload("") // nothing has changed
	if err := os.Rename(renewed.Cert, place.Cert); err != nil {
		t.Fatal(err)
	}
	reload("cannot use " + place.Cert + " with " + place.Key + ": tls: private key does not match public key")
	if err := os.Remove(place.Key); err != nil {
		t.Fatal(err)
	}
	reload("cannot read the TLS files: open " + place.Key + ": no such file or directory")
	if err := os.Rename(renewed.Key, place.Key); err != nil {
		t.Fatal(err)
	}
	reload("")
}

func TestUnusableFilesAreNamedAtStart(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	good := files(t)(ca.Issue("client", testbed.CertOptions{}))
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := good
	missing.CA = filepath.Join(t.TempDir(), "missing.crt")
	if _, err := cluster.New(cluster.Options{TLS: missing}); !errors.Is(err, fs.ErrNotExist) ||
		!contains(err, missing.CA) {
		t.Errorf("a file that is missing: %v", err)
	}
	noCA := good
	noCA.CA = empty
	if _, err := cluster.New(cluster.Options{TLS: noCA}); !contains(err,
		"cannot use "+empty+": it contains no PEM certificate") {
		t.Errorf("an empty CA file: %v", err)
	}
	noCert := good
	noCert.Cert = empty
	if _, err := cluster.New(cluster.Options{TLS: noCert}); !contains(err, "cannot use "+empty+" with "+good.Key) {
		t.Errorf("an empty certificate: %v", err)
	}
}

func TestDiagnoseNamesWhyAMemberDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ca, other := newCA(t), newCA(t)
	url := secured(t, ca)
	good := files(t)(ca.Issue("client", testbed.CertOptions{}))
	expired := files(t)(ca.Expired("expired"))
	trustsAnother, without := good, good
	trustsAnother.CA = other.File
	without.Cert, without.Key = "", ""
	proxy := testbed.NewProxy(t, strings.TrimPrefix(url, "https://"))
	proxy.Set(testbed.Cut())

	for name, c := range map[string]struct {
		url   string
		files cluster.TLSFiles
		want  string
	}{
		"nothing listens": {strings.Replace(noListener(t), "http:", "https:", 1), good, "connection refused"},
		"cut off": {
			"https://" + proxy.Addr(), good,
			"TLS: it accepts connections but does not respond within 1s",
		},
		"no TLS files": {url, cluster.TLSFiles{}, "no TLS files are configured: set cluster.tls"},
		"this host trusts another CA": {
			url, trustsAnother,
			"this host does not trust its certificate: tls: failed to verify certificate: x509: certificate signed " +
				"by unknown authority",
		},
		"this host's certificate is expired": {
			url, expired,
			"it refuses this host's certificate: remote error: tls: expired certificate; see cluster.tls.cert; this " +
				"host's " + expired.Cert + " (subject CN=expired) expired on 20",
		},
		"this host's certificate is from another CA": {
			url, files(t)(ca.WrongCA("unknown")),
			"it refuses this host's certificate: remote error: tls: unknown certificate authority",
		},
		"this host has no certificate": {
			url, without,
			"it refuses this host's certificate: remote error: tls: certificate required",
		},
		"the member's certificate is expired": {
			badMember(t, "late", ca.Expired), good,
			"TLS: its certificate (subject CN=late) expired on 20",
		},
		"the member's certificate is for another host": {
			badMember(t, "elsewhere", ca.WrongSAN), good,
			"x509: certificate is valid for 192.0.2.1, not 127.0.0.1; see cluster.tls.ca",
		},
		"the member uses http": {
			"https://" + plain(t), good,
			"TLS: it closes the connection: EOF; check whether it speaks TLS",
		},
	} {
		client := connectTLS(t, c.url, c.files)
		err := client.Diagnose(within(t), c.url)
		if !contains(err, c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// badMember runs a member whose certificate is invalid in some way.
func badMember(t *testing.T, name string, issue func(name string) (testbed.CertFiles, error)) (url string) {
	t.Helper()
	certs, err := issue(name)
	if err != nil {
		t.Fatal(err)
	}
	ports := testbed.FreePorts(t, 2)
	url = fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	start(t, testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "n1", Dir: t.TempDir(), TLS: &certs,
		ClientURL: url, PeerURL: fmt.Sprintf("https://127.0.0.1:%d", ports[1]),
	})
	testbed.Eventually(t, bound, "it listens", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	return url
}

func plain(t *testing.T) string {
	t.Helper()
	return strings.TrimPrefix(testbed.StartCluster(t, 1, quick()).Endpoints()[0], "http://")
}
