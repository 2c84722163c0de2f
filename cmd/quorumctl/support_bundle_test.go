// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// The secrets that no bundle may contain.
const (
	plantedPassword = "correct-horse-battery"
	plantedS3       = "wJalrXUtnFEMIK7MDENGbPxRfiCY"
	plantedIdentity = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS"
	plantedToken    = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl"
	plantedFlag     = "flag-stays-hidden"
	plantedVariable = "variable-stays-hidden"
	plantedKey      = "MHcCAQEEIBFlantedKeyOfTheCluster"
	plantedURL      = "urlpass-stays-hidden"
)

func planted() []string {
	return []string{
		plantedPassword, plantedS3, plantedIdentity, plantedToken, plantedFlag, plantedVariable, plantedKey, plantedURL,
	}
}

// secretHost is a machine with secrets everywhere: in files, in etcd's arguments and variables, in the journal, and in
// quorumd's documents.
type secretHost struct {
	t      *testing.T
	dir    string
	socket string
	config string
	keys   []string // the first line of each of etcd's own keys, after the header
}

// secrets lists everything that must not be in a bundle.
func (s secretHost) secrets() []string { return append(planted(), s.keys...) }

func (s secretHost) file(name, text string, mode os.FileMode) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func newSecretHost(t *testing.T, socket string) secretHost {
	t.Helper()
	s := secretHost{t: t, dir: t.TempDir(), socket: socket}
	serve := func() string {
		metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "etcd_server_has_leader 1\netcd_debugging_mvcc_watcher_total 2\n"+
				"quorumd_up{url=\"http://root:%s@n1\"} 1\nother 1\n", plantedURL)
		}))
		t.Cleanup(metrics.Close)
		return metrics.URL
	}
	etcdURL, ownURL := serve(), serve()
	tls := s.certify()
	etcd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 300", "etcd", "--experimental-auth-token", plantedFlag)
	etcd.Env = append(os.Environ(), "ETCD_MY_SECRET="+plantedVariable)
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Process.Kill(); _ = etcd.Wait() })
	s.file("systemctl", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--value*) echo %d;; *) echo ActiveState=active;; "+
		"esac\n", etcd.Process.Pid), 0o755)
	s.file("journalctl", fmt.Sprintf("#!/bin/sh\necho 'the store refuses %s of %s'\necho 'age: %s'\necho 'etcd: %s'\n"+
		"echo '-----BEGIN EC PRIVATE KEY-----'; echo '%s'; echo '-----END EC PRIVATE KEY-----'\n"+
		"echo 'jwt %s'\necho done\n",
		plantedS3, plantedPassword, plantedIdentity, strings.Join(s.keys, " and "), plantedKey, plantedToken), 0o755)
	s.file("etcd", "#!/bin/sh\necho etcd Version: 3.6.0\n", 0o755)
	password := s.file("password", plantedPassword+"\n", 0o400)
	identity := s.file("identity", plantedIdentity+"\n", 0o400)
	credentials := s.file("credentials", "[default]\naws_access_key_id = THEACCESSKEY\naws_secret_access_key = "+
		plantedS3+"\n", 0o400)
	env := s.file("etcd.env", "ETCD_NAME=n1\nETCD_MY_PASSWORD="+plantedVariable+"\n", 0o600)
	s.config = s.file("quorumd.yaml", fmt.Sprintf(`# the old identity was %s, at https://root:%s@n1:2379
cluster: {name: demo, endpoints: ["https://127.0.0.1:2379"], tls: {}}
etcd:
  clientURL: "https://127.0.0.1:2379"
  peerURL: "https://127.0.0.1:2380"
  metricsURL: %[3]q
  tls: {ca: %[4]s/ca.crt, cert: %[4]s/server.crt, key: %[4]s/server.key,
    peerCert: %[4]s/peer.crt, peerKey: %[4]s/peer.key}
  binary: %[5]s
  user: root
  passwordFile: %[6]s
  environmentFile: %[7]s
  environment: {ETCD_MY_PASSWORD: %[8]s}
metrics: {listen: %[9]q}
backup:
  identityFile: %[10]s
  store: {s3: {endpoint: "https://s3.example:443", bucket: b, credentialsFile: %[11]s}}
`, plantedIdentity, plantedURL, etcdURL, tls, filepath.Join(s.dir, "etcd"), password, env, plantedVariable,
		strings.TrimPrefix(ownURL, "http://"), identity, credentials), 0o600)
	return s
}

// certify creates the directory with etcd's certificates and keys, and returns it.
func (s *secretHost) certify() string {
	s.t.Helper()
	authority, dir, now := filepath.Join(s.dir, "pki"), filepath.Join(s.dir, "tls"), time.Now()
	err := pki.Create(authority, now)
	if err != nil {
		s.t.Fatal(err)
	}
	open, err := pki.Open(authority, now)
	if err != nil {
		s.t.Fatal(err)
	}
	bundle, err := open.Host("n1", []string{"127.0.0.1"}, now)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := pki.Install(bundle, pki.Place{Dir: dir, Etcd: -1, Quorumd: -1}, now); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"server.key", "peer.key"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		s.keys = append(s.keys, strings.Split(string(text), "\n")[1])
	}
	return dir
}

// bundle runs the command in a separate process, and returns its exit code, its output and the files of its bundle.
func (s secretHost) bundle(more ...string) (code int, output string, files map[string]string) {
	s.t.Helper()
	out := filepath.Join(s.t.TempDir(), "bundle.tar.gz")
	code, output = s.run("", append([]string{"--config", s.config, "--out", out}, more...)...)
	if _, err := os.Stat(out); err != nil {
		return code, output, nil
	}
	return code, output, s.unpack(out)
}

// run runs the command in that directory, and returns its exit code and its output.
func (s secretHost) run(where string, flags ...string) (code int, output string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{"--socket", s.socket, "support-bundle"}, flags...)...)
	cmd.Dir, cmd.Env = where, append(os.Environ(), "QUORUMCTL_TEST_MAIN=1", "PATH="+s.dir+":"+os.Getenv("PATH"))
	text, _ := cmd.CombinedOutput() // the exit code reports failure
	return cmd.ProcessState.ExitCode(), string(text)
}

// unpack returns the files of a bundle, by name.
func (s secretHost) unpack(bundle string) map[string]string {
	s.t.Helper()
	text, err := os.ReadFile(bundle)
	if err != nil {
		s.t.Fatal(err)
	}
	if info, err := os.Stat(bundle); err != nil || info.Mode().Perm() != 0o600 {
		s.t.Errorf("other users can read it: %v, %v", info.Mode(), err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			s.t.Fatal(err)
		}
		all, err := io.ReadAll(archive)
		if err != nil {
			s.t.Fatal(err)
		}
		files[filepath.Base(h.Name)] = string(all)
	}
}

// TestBundleIsWrittenToTheWorkingDirectory passes no flags, so that it reads this machine's configuration, if any.
func TestBundleIsWrittenToTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &fakeBackend{})
	s, here := newSecretHost(t, socket), t.TempDir()
	code, output := s.run(here)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	bundles, err := filepath.Glob(filepath.Join(here, "quorumd-"+host+"-*.tar.gz"))
	if err != nil || len(bundles) != 1 || code != 0 && code != exitUnavailable ||
		!strings.Contains(output, "wrote "+filepath.Base(bundles[0])) {
		t.Fatalf("exit %d, there are %v, %v: %s", code, bundles, err, output)
	}
	if files := s.unpack(bundles[0]); files["status.json"] == "" || files["CONTENTS.txt"] == "" {
		t.Errorf("%d files: %s", len(files), files["CONTENTS.txt"])
	}
}

func TestBundleContainsNoSecret(t *testing.T) {
	t.Parallel()
	d := &fakeBackend{}
	d.status.Reasons = []control.Reason{{Code: "STEP_FAILED", Text: "etcd refuses " + plantedPassword}}
	socket, _ := serve(t, d)
	s := newSecretHost(t, socket)
	code, output, files := s.bundle()
	if code != 0 {
		t.Errorf("exit %d: %s", code, output)
	}
	for _, secret := range s.secrets() {
		for name, text := range files {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
		if strings.Contains(output, secret) {
			t.Errorf("%q is shown: %s", secret, output)
		}
	}
	for name, want := range map[string]string{
		"status.json": `"etcd refuses [removed]"`, "explain.txt": "STEP_FAILED", "quorumd.yaml": "name: demo",
		"etcd-environment.txt": "ETCD_NAME=n1", "etcd-process.txt": "--experimental-auth-token [removed]",
		"etcd-metrics.txt": "etcd_server_has_leader 1", "etcd-load.txt": "watchers: 2 (0 slow)",
		"quorumd-metrics.txt": "quorumd_up", "units.txt": "active",
		"journal-etcd.txt": "done", "journal-quorumd.txt": "the store refuses [removed] of [removed]",
		"kernel.txt": "/proc/loadavg", "etcd-version.txt": "3.6.0", "history.json": "[",
		"certificates.txt": "peer.crt: CN=n1,", "CONTENTS.txt": "secrets removed",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q: %.500s", name, want, files[name])
		}
	}
}

func TestBundleListsMissingParts(t *testing.T) {
	t.Parallel()
	s := newSecretHost(t, "/nowhere")
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, append(text, "nonsense: [\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.file("systemctl", "#!/bin/sh\necho 'no bus is there' >&2\nexit 1\n", 0o755)
	code, output, files := s.bundle()
	for _, want := range []string{
		"missing: status.json", "missing: network.txt", "are missing",
		"missing: etcd-process.txt: cannot find the process of etcd.service: systemctl: no bus is there",
	} {
		if code != exitUnavailable || !strings.Contains(output, want) {
			t.Errorf("exit %d, no %q: %s", code, want, output)
		}
	}
	if list := files["CONTENTS.txt"]; !strings.Contains(list, "status.json") || !strings.Contains(list, "missing: ") {
		t.Errorf("%s", list)
	}
	if files["journal-quorumd.txt"] == "" {
		t.Error("the journal is missing too")
	}
	for _, secret := range s.secrets() {
		for name, text := range files {
			if strings.Contains(text, secret) || strings.Contains(output, secret) {
				t.Errorf("%s has %q, although the configuration is invalid: %s", name, secret, output)
			}
		}
	}
}

// TestBundleWithHungQuorumd takes as long as the timeout for quorumd.
func TestBundleWithHungQuorumd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tempdir.New(t), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/status") {
			<-over
		}
	}))
	server.Listener = l
	server.Start()
	t.Cleanup(func() { close(over); server.Close() })
	code, output, files := newSecretHost(t, socket).bundle()
	if code != exitUnavailable || !strings.Contains(files["etcd-process.txt"], "--experimental-auth-token") {
		t.Errorf("exit %d, etcd's process: %q\n%s", code, files["etcd-process.txt"], output)
	}
	for _, name := range []string{
		"status.json", "status.txt", "explain.txt", "health.txt", "network.txt", "network.json", "checks.json",
		"history.json",
	} {
		if !strings.Contains(output, "missing: "+name) || !strings.Contains(files["CONTENTS.txt"], name) {
			t.Errorf("%s is not reported as missing: %s", name, output)
		}
	}
}

func TestABundleOverwritesNothing(t *testing.T) {
	t.Parallel()
	s := newSecretHost(t, "/nowhere")
	there := s.file("there", "precious", 0o600)
	r := quorumctl(t, "/nowhere", "support-bundle", "--config", s.config, "--out", there)
	text, err := os.ReadFile(there)
	if r.code != exitUsage || !strings.Contains(r.stderr, "→ choose a different file with --out") || err != nil ||
		string(text) != "precious" {
		t.Errorf("exit %d, it is %q now: %v", r.code, text, err)
	}
}
