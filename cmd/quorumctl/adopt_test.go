// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// runningEtcd is a host with a running etcd that uses TLS, and a fake systemctl that reports it.
type runningEtcd struct {
	dir, tls, data, address string
	binary                  string
	member                  *testbed.Member
}

// startRunningEtcd starts etcd. Some of its settings are flags, and some are variables, as in a unit's environment
// file. The n-th host has its own address, because all etcds use the same ports.
func startRunningEtcd(t *testing.T, n int) *runningEtcd {
	t.Helper()
	dir, pid := t.TempDir(), os.Getpid()
	h := &runningEtcd{
		dir: dir, tls: filepath.Join(dir, "tls"), data: filepath.Join(dir, "data"),
		address: fmt.Sprintf("127.%d.%d.%d", 64+n, pid>>8&255, pid&255),
		binary:  testbed.Etcd(t, testbed.Small),
	}
	authority := filepath.Join(dir, "pki")
	must(t, pki.Create(authority, time.Now()))
	a, err := pki.Open(authority, time.Now())
	must(t, err)
	bundle, err := a.Host("n1", []string{h.address}, time.Now())
	must(t, err)
	_, err = pki.Install(bundle, pki.Place{Dir: h.tls, Etcd: -1, Quorumd: -1}, time.Now())
	must(t, err)
	unit := filepath.Join(dir, "unit")
	must(t, os.WriteFile(unit, fmt.Appendf(nil, "#!/bin/sh\nexec env ETCD_PEER_CERT_FILE=%[1]s/peer.crt "+
		"ETCD_PEER_KEY_FILE=%[1]s/peer.key ETCD_PEER_TRUSTED_CA_FILE=%[1]s/peer-ca.crt "+
		"ETCD_PEER_CLIENT_CERT_AUTH=true "+
		"%[2]s \"$@\"\n", h.tls, h.binary), 0o755))
	h.member, err = testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: unit, Name: "n1", Dir: dir, DataDir: h.data, ClientURL: h.url(2379), PeerURL: h.url(2380),
		Extra: []string{
			"--cert-file=" + h.tls + "/server.crt", "--key-file=" + h.tls + "/server.key", "--client-cert-auth",
			"--trusted-ca-file=" + h.tls + "/ca.crt",
		},
	})
	must(t, err)
	h.member.StopAfter(t)
	h.version(t, h.client())
	must(t, os.WriteFile(filepath.Join(dir, "systemctl"), fmt.Appendf(nil, "#!/bin/sh\n"+
		"case $1 in is-enabled) echo enabled; exit;; esac\n"+
		"echo LoadState=loaded; echo UnitFileState=enabled; echo ActiveState=active; echo MainPID=%d\n"+
		"echo 'ExecStart={ path=%s ; argv[]=%[2]s ; ignore_errors=no }'\n", h.member.PID(), h.binary), 0o755))
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *runningEtcd) url(port int) string { return fmt.Sprintf("https://%s:%d", h.address, port) }

// client returns the TLS files of a client.
func (h *runningEtcd) client() testbed.CertFiles {
	return testbed.CertFiles{CA: h.tls + "/ca.crt", Cert: h.tls + "/client.crt", Key: h.tls + "/client.key"}
}

// version connects to etcd as a client with these TLS files, and returns etcd's version.
func (h *runningEtcd) version(t *testing.T, files testbed.CertFiles) (version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.member.Options.TLS = &files
	must(t, h.member.WaitReady(ctx))
	client, err := h.member.Client()
	must(t, err)
	defer client.Close()
	s, err := client.Status(ctx, h.member.Options.ClientURL)
	must(t, err)
	return s.Version
}

// init runs quorumctl init on the host, for a cluster of three.
func (h *runningEtcd) init(t *testing.T, name string, more ...string) (string, error) {
	t.Helper()
	return asProgram(t, "PATH="+h.dir, append([]string{
		"init", "-o", "wide", "--mode", "manage", "--name", name, "--id", name,
		"--hosts", fmt.Sprintf("%s=%s,n3=10.0.0.3,n4=10.0.0.4", name, h.address),
	}, more...)...)
}

func TestInitAdoptsURLsAndCertificatesOfRunningEtcd(t *testing.T) {
	t.Parallel()
	h := startRunningEtcd(t, 1)
	file := filepath.Join(h.dir, "quorumd.yaml")
	out, err := h.init(t, "n1", "--file", file, "--tls", h.tls, "--data-dir", h.data)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string // without the line about this machine's disk
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "disk ") && !strings.Contains(line, "GiB free") &&
			!strings.Contains(line, "run this as root") {
			got = append(got, line)
		}
	}
	want := []string{
		"found here:",
		"address   " + h.address,
		"etcd      " + h.binary + ", version " + h.version(t, h.client()),
		"unit      etcd.service, enabled",
		"runs with --advertise-client-urls=" + h.url(2379),
		"runs with --cert-file=" + h.tls + "/server.crt",
		"runs with --data-dir=" + h.data,
		"runs with --initial-advertise-peer-urls=" + h.url(2380),
		"runs with --name=n1",
		"runs with --peer-cert-file=" + h.tls + "/peer.crt",
		"runs with --peer-trusted-ca-file=" + h.tls + "/peer-ca.crt",
		"runs with --trusted-ca-file=" + h.tls + "/ca.crt",
		// lo has only one address of 127/8
		"warning: no interface of this host has " + h.address + ": is this host n1?",
		"wrote " + file + ": OK",
		"→ mv -i " + file + " " + defaultConfig,
		"→ systemctl enable --now quorumd", // no bootstrap, because the cluster exists
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	c, err := config.Load(file)
	must(t, err)
	if c.Etcd.TLS == nil || c.Cluster.TLS == nil {
		t.Fatal("the configuration has no TLS")
	}
	in := func(name string) string { return filepath.Join(h.tls, name) }
	if want := (config.EtcdTLS{
		CA: in("ca.crt"), Cert: in("server.crt"), Key: in("server.key"),
		PeerCA: in("peer-ca.crt"), PeerCert: in("peer.crt"), PeerKey: in("peer.key"),
	}); *c.Etcd.TLS != want {
		t.Errorf("etcd.tls is %+v, want %+v", *c.Etcd.TLS, want)
	}
	if want := []string{h.url(2379), "https://10.0.0.3:2379", "https://10.0.0.4:2379"}; !slices.Equal(
		c.Cluster.Endpoints, want) {
		t.Errorf("cluster.endpoints are %q, want %q", c.Cluster.Endpoints, want)
	}
	for what, is := range map[string][2]string{
		"host.name":            {c.Host.Name, "n1"},
		"etcd.binary":          {c.Etcd.Binary, h.binary},
		"etcd.dataDir":         {c.Etcd.DataDir, h.data},
		"etcd.clientURL":       {c.Etcd.ClientURL, h.url(2379)},
		"etcd.listenPeerURL":   {c.Etcd.ListenPeerURL, h.url(2380)},
		"etcd.peerURL":         {c.Etcd.PeerURL, h.url(2380)},
		"etcd.listenClientURL": {c.Etcd.ListenClientURL, h.url(2379)},
	} {
		if is[0] != is[1] {
			t.Errorf("%s is %s, want %s", what, is[0], is[1])
		}
	}
	h.member.Options.ClientURL = c.Etcd.ClientURL // quorumd uses the URL of the written configuration
	h.version(t, testbed.CertFiles(*c.Cluster.TLS))
	// The only mistakes are the loopback addresses of this host, which the other hosts cannot reach.
	if out, err := asProgram(t, "PATH="+h.dir, "config", "check", file); err == nil ||
		!strings.Contains(out, ": 2 mistakes\n") || strings.Count(out, "no other host can reach 127.") != 2 {
		t.Errorf("config check: %v: %s", err, out)
	}
}

// TestInitReportsHowARunningEtcdDiffers passes answers that differ from the settings of a running etcd.
func TestInitReportsHowARunningEtcdDiffers(t *testing.T) {
	t.Parallel()
	h := startRunningEtcd(t, 2)
	other := t.TempDir()
	differs := func(flag, value, key, wanted string) string {
		return "etcd on this host runs with --" + flag + "=" + value + ", but " + key + " is " + wanted
	}
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"n2", []string{"--tls", h.tls, "--data-dir", h.data}, []string{differs("name", "n1", "host.name", "n2")}},
		{"n1", nil, []string{
			differs("data-dir", h.data, "etcd.dataDir", "/var/lib/etcd/default"),
			differs("advertise-client-urls", h.url(2379), "etcd.clientURL", "http://"+h.address+":2379"),
			differs("initial-advertise-peer-urls", h.url(2380), "etcd.peerURL", "http://"+h.address+":2380"),
		}},
		{"n1", []string{"--tls", other, "--data-dir", h.data}, []string{
			differs("cert-file", h.tls+"/server.crt", "etcd.tls.cert", other+"/server.crt"),
			differs("trusted-ca-file", h.tls+"/ca.crt", "etcd.tls.ca", other+"/ca.crt"),
			differs("peer-cert-file", h.tls+"/peer.crt", "etcd.tls.peerCert", other+"/peer.crt"),
			differs("peer-trusted-ca-file", h.tls+"/peer-ca.crt", "etcd.tls.peerCA", other+"/ca.crt"),
		}},
	} {
		out, err := h.init(t, c.name, append(c.args, "--dry-run", "--file", filepath.Join(h.dir, "q.yaml"))...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []string
		for line := range strings.Lines(out) {
			if _, text, found := strings.Cut(line, "warning: etcd on this host "); found {
				got = append(got, "etcd on this host "+strings.TrimSpace(text))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: got\n%s\nwant\n%s", c.name, c.args, strings.Join(got, "\n"),
				strings.Join(c.want, "\n"))
		}
	}
}
