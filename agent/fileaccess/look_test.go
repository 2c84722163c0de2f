// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fileaccess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
)

// TestMain also is the child that checks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := ChildMain(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // regardless of the umask
		t.Fatal(err)
	}
	return path
}

func TestKeyMustBeReadableByTheServicesUserOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passwd := write(t, filepath.Join(dir, "passwd"),
		"root:x:0:0::/:/bin/sh\nquorumd:x:990:990::/:/bin/false\nalice:x:1000:1000::/:/bin/sh\n"+
			"bob:x:1001:500::/:/bin/sh\nbad\nworse:x:y:z:\n", 0o600)
	group := write(t, filepath.Join(dir, "group"),
		"root:x:0:alice\nquorumd:x:990:\nquorumd-admin:x:991:alice\nusers:x:500:alice,quorumd\n"+
			"many:x:501:a,b,c,d,e\nbad\nworse:x:y:\n", 0o600)
	a, err := readAccounts(passwd, group)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		mode os.FileMode
		gid  uint32
		says string // empty: nothing
	}{
		"its user's alone":                    {0o400, 990, ""},
		"its user's and writable":             {0o600, 990, ""},
		"readable by a group of it alone":     {0o640, 990, ""},
		"readable by root's group":            {0o640, 0, ""},
		"closed to the group that may change": {0o600, 991, ""},
		"readable by all":                     {0o644, 990, "(mode 0644) is readable by every user on this host"},
		"writable by all":                     {0o602, 990, "readable by every user on this host"},
		"readable by those who may change": {
			0o640, 991,
			"readable by the group quorumd-admin, which should reach etcd only through quorumd (control.group)",
		},
		"writable by the control group": {0o620, 991, "readable by the group quorumd-admin"},
		"readable by other users":       {0o640, 500, "readable by alice, bob, of the group users"},
		"readable by many":              {0o640, 501, "readable by a, b, c and 2 more, of the group many"},
	} {
		said := key{path: "/k", mode: c.mode, uid: 990, gid: c.gid}.open("quorumd", "quorumd-admin", a)
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", what, said, c.says)
		}
		if said != "" && !strings.HasSuffix(said, "; run: chown quorumd: /k && chmod 0400 /k") {
			t.Errorf("%s: no command to fix it: %s", what, said)
		}
	}
}

func TestUsersOfTheOldGroupWithAccessToTheKeyAreReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	passwd := write(t, filepath.Join(dir, "passwd"), "quorumd:x:990:990::/:/bin/false\n", 0o600)
	group := write(t, filepath.Join(dir, "group"), "quorumd:x:990:carol\n", 0o600)
	a, err := readAccounts(passwd, group)
	if err != nil {
		t.Fatal(err)
	}
	said := key{path: "/k", mode: 0o640, gid: 990}.open("quorumd", "quorumd-admin", a)
	if !strings.Contains(said, "readable by carol, of the group quorumd") {
		t.Errorf("got %q", said)
	}
}

// configuration writes a configuration whose key has that mode.
func configuration(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	key := write(t, filepath.Join(dir, "client.key"), "no key", mode)
	return write(t, filepath.Join(dir, "quorumd.yaml"), fmt.Sprintf(`
cluster: {name: prod, endpoints: ["https://192.0.2.1:2379"], tls: {cert: %[1]s, key: %[1]s}}
etcd: {clientURL: "https://192.0.2.1:2379", peerURL: "https://192.0.2.1:2380", environment: {
  ETCD_CERT_FILE: /c, ETCD_KEY_FILE: /k, ETCD_PEER_CERT_FILE: /c, ETCD_PEER_KEY_FILE: /k,
  ETCD_PEER_TRUSTED_CA_FILE: /a}}
paths: {state: %[2]s, runtime: %[2]s/none}
`, key, dir), 0o644)
}

func TestModeOfTheConfiguredKeyIsChecked(t *testing.T) {
	t.Parallel()
	for mode, open := range map[os.FileMode]bool{0o400: false, 0o600: false, 0o604: true} {
		c, err := config.Load(configuration(t, t.TempDir(), mode))
		if err != nil {
			t.Fatal(err)
		}
		if problems := OpenKey(c, "quorumd"); (len(problems) > 0) != open {
			t.Errorf("mode %o: %v", mode, problems)
		}
		c.Cluster.TLS.Key += ".none"
		if problems := OpenKey(c, "quorumd"); len(problems) > 0 {
			t.Errorf("a missing key: %v", problems)
		}
	}
}

func TestFileThatNoServiceReadsHasNoServiceUser(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"quorumd.yaml", "/etc/quorumd.yaml", "/etc/quorumd/hooks/x.yaml",
		"/etc/quorumd/quorumd.yml", "/etc/quorumd/.yaml",
	} {
		if user := ServiceUser(t.Context(), file); user != "" {
			t.Errorf("%s: %s", file, user)
		}
	}
	if user := ServiceUser(t.Context(), "/etc/quorumd/no-such-instance.yaml"); user == "" {
		t.Error("a file of the service has no user")
	}
}

func TestFilesHiddenFromTheServiceAreReported(t *testing.T) {
	t.Parallel()
	c := config.Config{Cluster: config.Cluster{TLS: &config.TLS{
		CA: "/etc/ssl/ca.pem", Cert: "/homes/q.crt",
		Key: "/root/q.key",
	}}}
	c.Metrics.WebConfig = "/var/tmp/web.yaml"
	said := strings.Join(Hidden(c), "\n")
	want := "metrics.webConfig: /var/tmp/web.yaml is in /var/tmp, which is hidden from the service"
	if !strings.Contains(said, want) {
		t.Errorf("no %q in %s", want, said)
	}
	if want := "cluster.tls.key: /root/q.key is in /root,"; !strings.Contains(said, want) ||
		strings.Contains(said, "tls.c") {
		t.Errorf("no %q, or more, in %s", want, said)
	}
}

func TestLookAsAnUnknownUserFails(t *testing.T) {
	t.Parallel()
	if _, err := Look(t.Context(), "/etc/quorumd/quorumd.yaml", "no-such-user"); !errors.Is(err, ErrNoUser) {
		t.Error(err)
	}
}

// TestLookEndsIfTheChildNeverAnswers uses a FIFO in place of a dead file server.
func TestLookEndsIfTheChildNeverAnswers(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, exec.CommandContext(t.Context(), "cat", fifo)); err == nil ||
		!strings.Contains(err.Error(), "a file hangs") {
		t.Error(err)
	}
}
