// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// etcdTLS returns the section etcd.tls of a configuration, with the files of the given directory and the given CA file
// for peers.
func etcdTLS(dir, peers string) string {
	return fmt.Sprintf("{ca: %[1]s/ca.crt, cert: %[1]s/server.crt, key: %[1]s/server.key, peerCA: %[2]s, "+
		"peerCert: %[1]s/peer.crt, peerKey: %[1]s/peer.key}", dir, peers)
}

// certified makes a world with all certificates from quorumctl pki, in which etcd's variables are derived from
// etcd.tls. The returned function installs a bundle on a host.
func certified(t *testing.T, authority *pki.Directory, o worldOptions) (*world, func(host, bundle string)) {
	t.Helper()
	dir := t.TempDir()
	place := func(host string) pki.Place { return pki.Place{Dir: filepath.Join(dir, host), Etcd: -1, Quorumd: -1} }
	install := func(host, bundle string) {
		t.Helper()
		if _, err := pki.Install(bundle, place(host), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	o.each = func(_ int, h *testbed.HostOptions) {
		for _, u := range []*string{&h.ClientURL, &h.PeerURL, &h.ListenClientURL, &h.ListenPeerURL} {
			*u = https(*u)
		}
		for i, u := range h.Endpoints {
			h.Endpoints[i] = https(u)
		}
		at, err := url.Parse(h.PeerURL)
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := authority.Host(h.Name, []string{at.Hostname()}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		install(h.Name, bundle)
		in := func(file string) string { return filepath.Join(place(h.Name).Dir, file) }
		h.Set["cluster.tls"] = fmt.Sprintf("{ca: %s, cert: %s, key: %s}", in("ca.crt"), in("client.crt"),
			in("client.key"))
		peers := in("peer-ca.crt")
		if authority.Shared() { // as if the host had been set up before there was a peer CA
			must(t, os.Remove(peers))
			peers = in("ca.crt")
		}
		h.Set["etcd.tls"] = etcdTLS(place(h.Name).Dir, peers)
	}
	w := newWorld(t, o)
	for _, h := range w.hosts {
		h.files = testbed.CertFiles{
			CA:   filepath.Join(place(h.Options.Name).Dir, "ca.crt"),
			Cert: filepath.Join(place(h.Options.Name).Dir, "client.crt"),
			Key:  filepath.Join(place(h.Options.Name).Dir, "client.key"),
		}
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{h.Options.ClientURL}, TLS: h.files.LiveConfig(), Logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() }) // etcd has exited
		h.etcd = client
	}
	return w, install
}

// servedExpiry returns the expiry of the certificate that etcd presents to new connections.
func (h *host) servedExpiry(files testbed.CertFiles) (time.Time, error) {
	config, err := files.ClientConfig()
	if err != nil {
		return time.Time{}, err
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: callTimeout}, Config: config}
	conn, err := d.Dial("tcp", address(h.Options.ClientURL))
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter, nil
}

func TestThreeHostsFormAClusterWithPKICertificatesAndReloadNewOnesUnderWrites(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	if err := pki.Create(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	authority, err := pki.Open(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w, install := certified(t, authority, worldOptions{hosts: 3, voters: 3})
	w.start()
	w.bootstrap()
	w.verify(3, 0)
	var endpoints []string
	for _, h := range w.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	client := w.hosts[0].files
	load, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{
		Endpoints: endpoints, TLS: &client, Rate: 50, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range w.hosts {
		untouched := h.expectSameProcess()
		before, err := h.servedExpiry(h.files)
		if err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Duration(i+2) * time.Second)
		bundle, err := authority.Renew(h.Options.Name, nil, later)
		if err != nil {
			t.Fatal(err)
		}
		install(h.Options.Name, bundle)
		w.eventually("etcd shows the new certificate", func() bool {
			now, err := h.servedExpiry(h.files)
			return err == nil && now.After(before)
		})
		acked := load.Report().Acked
		w.eventually("writes continue", func() bool { return load.Report().Acked > acked+50 })
		untouched("its certificates were renewed")
	}
	report := load.Stop()
	if report.Failed > 0 || report.Acked == 0 {
		t.Errorf("%d writes failed, %d did not", report.Failed, report.Acked)
	}
	t.Logf("%d writes, longest gap %s", report.Acked, report.LongestGap)
	for _, h := range w.hosts {
		w.eventually("the agent of "+h.Options.Name+" runs", func() bool { return h.waitsFor(policy.Idle) })
	}
	stranger, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files, err := stranger.Issue("stranger", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files.CA = client.CA
	config, err := files.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := clientv3.New(clientv3.Config{Endpoints: endpoints[:1], TLS: config, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	if _, err := foreign.Get(ctx, "x"); err == nil {
		t.Error("a client with another CA's certificate was accepted")
	}
}
