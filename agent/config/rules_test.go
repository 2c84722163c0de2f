// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrphanGraceFollowsTheLockTTL(t *testing.T) {
	t.Parallel()
	c := mustParse(t, valid+"timing: {lockTTL: 60s}\n")
	if want := 125 * time.Second; c.Timing.OrphanGrace != want {
		t.Errorf("orphanGrace is %s, want %s", c.Timing.OrphanGrace, want)
	}
}

func TestProbeStaysOutOfEtcdsDirectories(t *testing.T) {
	t.Parallel()
	for dirs, want := range map[string]string{
		"  dataDir: /data/n1\n":                                   "/data/.quorumd-probe",
		"  dataDir: /data/n1\n  walDir: /wal/n1\n":                "/wal/.quorumd-probe",
		"  dataDir: /data/n1\n  walDir: /data/n1/member/wal\n":    "/data/.quorumd-probe",
		"  dataDir: /data/n1\n  walDir: /data/n1wal/member/wal\n": "/data/n1wal/member/.quorumd-probe",
	} {
		if got := mustParse(t, valid+dirs).Disk.ProbeDir; got != want {
			t.Errorf("with\n%sprobeDir is %s, want %s", dirs, got, want)
		}
	}
}

func TestWarnsIfTheClientURLIsNotAnEndpoint(t *testing.T) {
	t.Parallel()
	c := mustParse(t, strings.Replace(valid, "[http://192.0.2.1:2379]", "[http://192.0.2.2:2379]", 1))
	want := []string{"etcd.clientURL (http://192.0.2.1:2379) is not in cluster.endpoints: add it there on every " +
		"host, or other hosts will not query this one"}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnsAboutHTTPSWithoutCertificatesForEtcd(t *testing.T) {
	t.Parallel()
	https := strings.Replace(strings.ReplaceAll(valid, "http:", "https:"), "etcd:", "  tls: {}\netcd:", 1)
	for environment, want := range map[string][]string{
		"": {
			"etcd.listenClientURL (https://192.0.2.1:2379) is https",
			"etcd.listenPeerURL (https://192.0.2.1:2380) is https",
		},
		"{ETCD_CERT_FILE: /c, ETCD_KEY_FILE: /k}": {
			"etcd.listenPeerURL (https://192.0.2.1:2380) is https",
		},
		"{ETCD_CERT_FILE: /c, ETCD_KEY_FILE: /k, ETCD_PEER_AUTO_TLS: true}": nil,
		"{ETCD_CERT_FILE: /c, ETCD_PEER_CERT_FILE: /c, ETCD_PEER_KEY_FILE: /k}": {
			"etcd.listenClientURL (https://192.0.2.1:2379) is https",
		},
		"{ETCD_CERT_FILE: /c, ETCD_KEY_FILE: /k, ETCD_PEER_CERT_FILE: /c, ETCD_PEER_KEY_FILE: /k}": nil,
		"{ETCD_AUTO_TLS: false, ETCD_PEER_CERT_FILE: /c, ETCD_PEER_KEY_FILE: /k, ETCD_ENABLE_PPROF: yes}": {
			"etcd.listenClientURL (https://192.0.2.1:2379) is https",
		},
	} {
		text := https
		if environment != "" {
			text += "  environment: " + environment + "\n"
		}
		got := mustParse(t, text).Warnings
		if len(got) != len(want) {
			t.Errorf("%q: %q", environment, got)
			continue
		}
		for i, warning := range got {
			if !strings.HasPrefix(warning, want[i]) || !strings.Contains(warning, "unless etcd.service sets them") {
				t.Errorf("%q: %q", environment, warning)
			}
		}
	}
}

func TestMetricsListenerMustNameAHost(t *testing.T) {
	t.Parallel()
	_, err := parse("quorumd.yaml", []byte(valid+"metrics: {listen: \"192.0.2.300:9379\"}\n"), n1)
	if err == nil || !strings.Contains(err.Error(), `"192.0.2.300" is neither`) {
		t.Errorf("got %v", err)
	}
}

func TestUnusableHostNameIsReported(t *testing.T) {
	t.Parallel()
	for name, hostname := range map[string]func() (string, error){
		`quorumd.yaml: host.name: not set, and the machine's host name cannot be read; set host.name`: func() (string,
			error,
		) {
			return "", errors.New("no")
		},
		`quorumd.yaml: host.name: not set, and the machine's host name "(none)" cannot be used: ` +
			`it must be 1 to 63 letters, digits, dots, dashes and underscores, ` +
			`beginning with a letter or digit, not "(none)"; set host.name`: func() (string, error) {
			return "(none)", nil
		},
	} {
		_, err := parse("quorumd.yaml", []byte(valid), hostname)
		if err == nil || err.Error() != name {
			t.Errorf("got  %v\nwant %s", err, name)
		}
		if _, err := parse("quorumd.yaml", []byte(valid+"host: {name: n1}\n"), hostname); err != nil {
			t.Errorf("with host.name set: %v", err)
		}
	}
}

func TestWarnsAboutAnEnvironmentFileThatQuorumdMayWrite(t *testing.T) {
	t.Parallel()
	in := func(more, file string) Config {
		return mustParse(t, strings.Replace(valid, "etcd:\n", "etcd:\n  environmentFile: "+file+"\n", 1)+more)
	}
	if c := in("", "/var/lib/quorumd/etcd.env"); len(c.Warnings) != 1 {
		t.Errorf("a file in quorumd's own directory is warned about with %q", c.Warnings)
	}
	if c := in("", "/var/lib/quorumd-etcd/a.env"); len(c.Warnings) != 0 ||
		c.Etcd.StartGuardFile() != "/var/lib/quorumd-etcd/a.hold" {
		t.Errorf("%q, %s", c.Warnings, c.Etcd.StartGuardFile())
	}
	if c := in("paths: {state: /var/lib/quorumd/a}\n", "/var/lib/quorumd/a/etcd.env"); len(c.Warnings) != 1 ||
		!strings.Contains(c.Warnings[0], "use a path in /var/lib/quorumd-etcd") {
		t.Errorf("%q", c.Warnings)
	}
}

func TestMetricsAreForThisHostUnlessANetworkIsAllowed(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]struct {
		listen string
		warned int
	}{
		"":                                   {"127.0.0.1:9379", 0},
		"metrics: {allow: [192.0.2.0/24]}\n": {":9379", 0},
		"metrics: {listen: '127.0.0.1:1'}\n": {"127.0.0.1:1", 0},
		"metrics: {listen: '[::1]:1'}\n":     {"[::1]:1", 0},
		"metrics: {listen: ':1'}\n":          {":1", 1},
		"metrics: {listen: '192.0.2.1:1'}\n": {"192.0.2.1:1", 1},
	} {
		c := mustParse(t, valid+more)
		if c.Metrics.Listen != want.listen || len(c.Warnings) != want.warned {
			t.Errorf("%q: listens on %s, warns with %q", more, c.Metrics.Listen, c.Warnings)
		}
	}
}

func TestListedHostListensOnThePortOfItsURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://192.0.2.1:9381": ":9381", "http://n1.example:9381": ":9381", "http://127.0.0.1:9381": "127.0.0.1:9381",
		"http://[::1]:9381": "[::1]:9381",
	} {
		b := Bootstrap{Hosts: []string{"n2=http://192.0.2.2:1", "n1=" + url}}
		if got := b.defaultListen("n1"); got != want {
			t.Errorf("%s: %s, not %s", url, got, want)
		}
	}
	if got := (Bootstrap{}).defaultListen("n1"); got != "" {
		t.Errorf("a host that is not listed listens on %s", got)
	}
}

func TestClientsMayBeServedOverHTTPAndHTTPSOnOnePort(t *testing.T) {
	t.Parallel()
	const tls = "\n  tls: {ca: /etc/ca, cert: /etc/c, key: /etc/k, peerCA: /etc/pca}"
	for urls, c := range map[string]struct {
		more string
		want string // part of the error, or of the warnings
	}{
		"http://192.0.2.1:2379,https://192.0.2.1:2379": {tls, "is http: it accepts connections without a certificate"},
		"https://192.0.2.1:2379,http://192.0.2.1:2379": {"", "etcd does not start without ETCD_CERT_FILE"},
		"http://192.0.2.1:2379,https://192.0.2.1:2378": {tls, "the http and the https URL of the same address"},
		"http://192.0.2.1:2379,http://192.0.2.1:2379":  {tls, "the http and the https URL of the same address"},
		"http://192.0.2.1:2379,":                       {tls, "is not a valid URL"},
		"http://0.0.0.0:2380,https://0.0.0.0:2380":     {tls, "listen on the same address and port"},
	} {
		text := strings.Replace(valid, "etcd:\n", "etcd:\n  listenClientURL: "+urls+c.more+"\n", 1)
		got, err := Parse("quorumd.yaml", []byte(text))
		found := strings.Join(got.Warnings, "\n")
		if err != nil {
			found = err.Error()
		}
		if !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", urls, found, c.want)
		}
		if err == nil && got.Etcd.ListenClientURL != urls {
			t.Errorf("%s: etcd listens on %s", urls, got.Etcd.ListenClientURL)
		}
	}
}

func TestWarnsAboutUnverifiedStoresAndEndpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		warned string
	}{
		"discovery with the CAs of the system": {
			Config{Cluster: Cluster{Discovery: Discovery{SRV: "example.org"}, TLS: &TLS{}}}, "cluster.tls.ca is empty",
		},
		"discovery with a CA": {
			Config{Cluster: Cluster{Discovery: Discovery{SRV: "example.org"}, TLS: &TLS{CA: "/ca"}}}, "",
		},
		"the CAs of the system without discovery": {Config{Cluster: Cluster{TLS: &TLS{}}}, ""},
		"a password over http": {
			Config{
				Cluster: Cluster{Discovery: Discovery{File: "/list"}},
				Etcd:    Etcd{User: "quorumd", AllowUnencryptedPassword: true},
			}, "etcd.allowUnencryptedPassword is set",
		},
		"a store over http": {
			Config{Backup: Backup{Store: BackupStore{S3: &S3{Endpoint: "http://s3:80"}}}}, "is http",
		},
		"a store over http, encrypted": {
			Config{Backup: Backup{
				Store: BackupStore{S3: &S3{Endpoint: "http://s3:80"}}, EncryptTo: []string{"age1x"},
			}}, "",
		},
		"a store over https": {Config{Backup: Backup{Store: BackupStore{S3: &S3{Endpoint: "https://s3:443"}}}}, ""},
	} {
		got := strings.Join(unverifiedWarnings(&c.config), "\n")
		if (got == "") != (c.warned == "") || !strings.Contains(got, c.warned) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
