// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestTheFilesOfEtcdTLSAreChecked(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Etcd.TLS = &config.EtcdTLS{CA: "ca", Cert: "cert", PeerCA: "peer-ca", PeerCert: "peer-cert"}
	c.Etcd.Environment = map[string]string{"ETCD_CLIENT_CERT_FILE": "client-cert"}
	files := certificateFiles(c)
	for _, want := range []string{"cert", "peer-cert", "client-cert"} {
		if !slices.Contains(files.Chains, want) {
			t.Errorf("%s is not among %q", want, files.Chains)
		}
	}
	if !slices.Contains(files.Authorities, "ca") || !slices.Contains(files.Authorities, "peer-ca") {
		t.Errorf("the CA files are %q", files.Authorities)
	}
}

// An expired certificate is only reported, but a key that does not match is a configuration error.
func TestAnExpiredCertificateDoesNotPreventTheStart(t *testing.T) {
	t.Parallel()
	ca, err := testbed.NewCA(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := ca.Expired("quorumd")
	if err != nil {
		t.Fatal(err)
	}
	other, err := ca.Issue("other", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var c config.Config
	c.Host.ID, c.Host.Name = "host-n1", "n1"
	c.Cluster.TLS = &config.TLS{CA: agent.CA, Cert: agent.Cert, Key: agent.Key}
	dated, err := checkFiles(c)
	if err != nil || len(dated) != 1 || dated[0].Key != "cluster.tls.cert" ||
		!strings.HasPrefix(dated[0].Message, agent.Cert+" (subject CN=quorumd) expired on 20") ||
		!strings.Contains(dated[0].Message, "quorumctl pki renew n1") {
		t.Errorf("reported: %v, %v", dated, err)
	}
	c.Cluster.TLS.Key = other.Key
	if _, err := checkFiles(c); ExitCode(err) != exitConfig ||
		!strings.Contains(err.Error(), "does not match the certificate") ||
		!strings.Contains(err.Error(), "expired on") {
		t.Errorf("with the key of another certificate: %v", err)
	}
}
