// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build root

package fileaccess

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// unprivileged is a user that exists in every common Linux distribution. It owns none of the test's files unless the
// test adds some.
const unprivileged = "daemon"

// unprivilegedIDs returns the user and group ID of unprivileged, which differ between distributions.
func unprivilegedIDs(t *testing.T) (uid, gid int) {
	t.Helper()
	them, err := user.Lookup(unprivileged)
	if err != nil {
		t.Fatal(err)
	}
	uid, err = strconv.Atoi(them.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err = strconv.Atoi(them.Gid)
	if err != nil {
		t.Fatal(err)
	}
	return uid, gid
}

func TestRootFindsFilesClosedToTheServicesUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("cannot act as another user: run the test as root")
	}
	dir := tempdir.New(t)
	uid, gid := unprivilegedIDs(t)
	check := func() string {
		problems, err := CheckAs(t.Context(), filepath.Join(dir, "quorumd.yaml"), unprivileged)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		return strings.Join(got, "\n")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	configuration(t, dir, 0o600)
	if got := check(); !strings.Contains(got, "cannot read the configuration") ||
		!strings.Contains(got, "permission denied") {
		t.Errorf("in a closed directory: %s", got)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	got := check()
	for _, wanted := range []string{
		"cluster.tls.key: " + dir + "/client.key cannot be read: permission denied",
		"paths.state: " + dir + " is not writable: permission denied",
	} {
		if !strings.Contains(got, wanted) {
			t.Errorf("no %q in\n%s", wanted, got)
		}
	}
	if strings.Contains(got, "paths.runtime") {
		t.Errorf("a directory that systemd creates is reported: %s", got)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/client.key", uid, gid); err != nil {
		t.Fatal(err)
	}
	if got := check(); strings.Contains(got, "permission denied") || !strings.Contains(got, "is not PEM") {
		t.Errorf("with files owned by that user: %s", got)
	}
}

func TestRootFindsAKeyClosedToEtcdsUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("cannot act as another user: run the test as root")
	}
	dir := tempdir.New(t)
	ca, err := testbed.NewCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("n1", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, public := range []string{files.CA, files.Cert} {
		if err := os.Chmod(public, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Parse("quorumd.yaml", fmt.Appendf(nil, `
host: {name: n1}
cluster: {name: prod, endpoints: ["https://127.0.0.1:2379"], tls: {ca: %[1]s}}
etcd:
  {clientURL: "https://127.0.0.1:2379", peerURL: "https://127.0.0.1:2380", tls: {ca: %[1]s, cert: %[2]s, key: %[3]s}}
`, files.CA, files.Cert, files.Key))
	if err != nil {
		t.Fatal(err)
	}
	_, gid := unprivilegedIDs(t)
	problems, err := CheckEtcdAs(t.Context(), c, unprivileged)
	if err != nil || len(problems) != 2 || problems[0].Key != "etcd.tls.key" || problems[1].Key != "etcd.tls.peerKey" ||
		!strings.Contains(problems[0].Message, "let etcd's user read it") {
		t.Fatalf("%v, %v", problems, err)
	}
	if err := os.Chown(files.Key, 0, gid); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(files.Key, 0o640); err != nil {
		t.Fatal(err)
	}
	if problems, err := CheckEtcdAs(t.Context(), c, unprivileged); err != nil || len(problems) != 0 {
		t.Errorf("with a key that the user's group can read: %v, %v", problems, err)
	}
}
