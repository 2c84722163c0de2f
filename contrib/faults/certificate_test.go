// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// pki is the directory of the agent's certificates. It is the same on every machine, because the fault table contains
// it.
const pki = "/srv"

func inPKI(file string) string { return filepath.Join(pki, filepath.Base(file)) }

// TestHostFaultsAreFoundInTime uses a host with a certificate that expires soon.
func TestHostFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	made := tableOf(t, "host")
	dir := t.TempDir()
	ca, err := testbed.NewCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("client", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const unused = "https://127.0.0.1:1" // no process listens there
	h := start(t, testbed.MountFaultfs(t, memory(t)).Dir, map[string]string{
		"cluster.endpoints": "[" + unused + "]", "etcd.clientURL": unused,
		"cluster.tls": fmt.Sprintf("{ca: %s, cert: %s, key: %s}", inPKI(files.CA), inPKI(files.Cert), inPKI(files.Key)),
	}, "unshare", "-m", "sh", "-c", `mount --bind "$0" `+pki+` && exec "$@"`, dir)
	until(t, h, readyBound, "OK", "")

	// The agent reads the certificate when it starts, and every ten minutes.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.KillAgent(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue("client", testbed.CertOptions{NotAfter: time.Now().Add(5 * time.Minute)}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, h, 4*time.Minute, "OK", "ETCD_CERTIFICATE_EXPIRES_SOON")
	made.add(t, 0, Row{
		Fault: "a certificate is about to expire",
		How:   "`cluster.tls.cert` valid for 65 minutes with 5 left, in place when quorumd restarts",
	}, time.Since(began), h, "ETCD_CERTIFICATE_EXPIRES_SOON")
}
