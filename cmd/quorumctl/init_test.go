// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/cmd/quorumctl/setup"
)

// threeHosts returns the arguments of quorumctl init for n1, n2 and n3. This host is n1 with 127.0.0.1, an address that
// every machine has.
func threeHosts(file string, more ...string) []string {
	return append([]string{
		"init", "-o", "wide", "--name", "n1", "--id", "id-1", "--hosts", "n1=127.0.0.1,n2=10.0.0.2,n3=10.0.0.3",
		"--file", file,
	}, more...)
}

func TestInitWritesAValidConfigurationAndNeverOverwrites(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "quorumd.yaml")
	r := quorumctl(t, "SOCKET", threeHosts(file, "--dry-run")...)
	if r.code != exitOK || !strings.Contains(r.stdout, "would write "+file+":") ||
		!strings.Contains(r.stdout, "clientURL: http://127.0.0.1:2379") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run has written: %v", err)
	}
	r = quorumctl(t, "SOCKET", threeHosts(file, "--mode", "manage")...)
	if r.code != exitOK || !strings.Contains(r.stdout, "wrote "+file+": OK") ||
		!strings.Contains(r.stdout, "127.0.0.1 on lo") ||
		!strings.Contains(r.stdout, "→ on one host only, when quorumd runs on all: quorumctl bootstrap --yes") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	c, err := config.Load(file)
	if err != nil || c.Mode != config.ModeManage || c.Host.Name != "n1" || c.Host.ID != "id-1" ||
		c.Cluster.Voters != 3 ||
		len(c.Cluster.Endpoints) != 3 || c.Etcd.PeerURL != "http://127.0.0.1:2380" || len(c.Warnings) > 0 ||
		time.Duration(c.Repair.Dead) != 10*time.Minute {
		t.Errorf("%+v %v", c, err)
	}
	if r := quorumctl(t, "SOCKET", threeHosts(file, "--mode", "manage")...); r.code != exitOK {
		t.Errorf("the same again: exit %d\n%s", r.code, r.stderr)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r = quorumctl(t, "SOCKET", threeHosts(file)...)
	if r.code != exitConfig || !strings.Contains(r.stderr, "nothing is overwritten") ||
		!strings.Contains(r.stderr, "quorumctl config check") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestInitChecksTheCertificatesBeforeWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tls, file := filepath.Join(dir, "tls"), filepath.Join(dir, "quorumd.yaml")
	if err := os.Mkdir(tls, 0o755); err != nil {
		t.Fatal(err)
	}
	r := quorumctl(t, "SOCKET", threeHosts(file, "--tls", tls)...)
	if r.code != exitConfig || !strings.Contains(r.stderr, "it was not written") ||
		!strings.Contains(r.stderr, "ca.crt does not exist") {
		t.Errorf("without files: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a configuration that is wrong was written")
	}
	r = quorumctl(t, "SOCKET", threeHosts(file, "--tls", tls, "--dry-run")...)
	for _, want := range []string{
		"- https://10.0.0.2:2379", "clientURL: https://127.0.0.1:2379", "cert: " + tls + "/client.crt",
		"peerKey: " + tls + "/peer.key",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s%s", want, r.stdout, r.stderr)
		}
	}
}

func TestInitRefusesImpossibleAnswers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "quorumd.yaml")
	for hosts, says := range map[string]string{
		"":                        "no hosts are given",
		"n2=10.0.0.2":             "n1 is not among --hosts",
		"n1":                      `"n1" is not NAME=ADDRESS`,
		"n1=10.0.0.1,n2=10.0.0.1": "have the same name or address",
		"n1=10.0.0.1,n1=10.0.0.2": "have the same name or address",
		"n1=http://10.0.0.1":      "has a scheme or a port",
		"n1=10.0.0.1:2379":        "has a scheme or a port",
		"n1=0.0.0.0":              "is not an address at which other hosts can reach n1",
		"n1=a b,n2=10.0.0.2":      "it would have mistakes",
	} {
		r := quorumctl(t, "SOCKET", "init", "--name", "n1", "--id", "id-1", "--hosts", hosts, "--file", file)
		if r.code != exitUsage || !strings.Contains(r.stderr, says) || !strings.Contains(r.stderr, "→ ") {
			t.Errorf("%q: exit %d, want %q\n%s%s", hosts, r.code, says, r.stdout, r.stderr)
		}
	}
	none := filepath.Join(filepath.Dir(file), "none")
	for says, args := range map[string][]string{
		"cannot read nope.tar: it does not exist\n→ pass the bundle": threeHosts(file, "--tls", "nope.tar"),
		"it is neither a file nor a directory\n→ pass the bundle":    threeHosts(file, "--tls", "/dev/null"),
		"it would have mistakes": threeHosts(file, "--mode", "foo"),
		"there is no directory " + none + " for q.yaml\n→ mkdir -p " + none: threeHosts(none + "/q.yaml"),
	} {
		if r := quorumctl(t, "SOCKET", args...); r.code != exitUsage || !strings.Contains(r.stderr, says) {
			t.Errorf("%q: exit %d\n%s%s", says, r.code, r.stdout, r.stderr)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a refused answer has left a file")
	}
}

func TestInitAcceptsARelativeDirectory(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "quorumd.yaml")
	r := quorumctl(t, "SOCKET", threeHosts(file, "--tls", "testdata", "--dry-run")...)
	if want := "peerKey: " + here + "/testdata/peer.key"; r.code != exitOK || !strings.Contains(r.stdout, want) {
		t.Errorf("exit %d, no %q in\n%s%s", r.code, want, r.stdout, r.stderr)
	}
}

func TestNextCommandsStartTheServiceThatReadsTheFile(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"/etc/quorumd/quorumd.yaml": "systemctl enable --now quorumd",
		"/etc/quorumd/blue.yaml":    "systemctl enable --now quorumd@blue",
		"./q.yaml":                  "mv -i ./q.yaml /etc/quorumd/quorumd.yaml; systemctl enable --now quorumd",
	} {
		if got := strings.Join(nextCommands(config.Config{}, setup.Found{}, file), "; "); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// TestInitWritesNothingForCertificatesOfAnotherHost uses an etcd user that exists on no test machine.
func TestInitWritesNothingForCertificatesOfAnotherHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, tls, file := filepath.Join(dir, "pki"), filepath.Join(dir, "tls"), filepath.Join(dir, "quorumd.yaml")
	if err := pki.Create(authority, time.Now()); err != nil {
		t.Fatal(err)
	}
	a, err := pki.Open(authority, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := a.Host("n2", []string{"10.0.0.2"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Install(bundle, pki.Place{Dir: tls, Etcd: -1, Quorumd: -1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	const systemctl = "#!/bin/sh\necho LoadState=loaded\necho User=quorumd-none\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(systemctl), 0o755); err != nil {
		t.Fatal(err)
	}
	initAt := func(address string) (string, error) {
		hosts := "n1=" + address + ",n3=10.0.0.3"
		return asProgram(
			t,
			"PATH="+dir,
			"init",
			"--name",
			"n1",
			"--id",
			"id-1",
			"--hosts",
			hosts,
			"--file",
			file,
			"--tls",
			tls,
		)
	}
	out, err := initAt("10.0.0.9")
	exit, _ := errors.AsType[*exec.ExitError](err)
	if _, err := os.Stat(file); err == nil || exit == nil || exit.ExitCode() != exitConfig ||
		!strings.Contains(out, "is not valid for 10.0.0.9, the host in etcd.clientURL") ||
		!strings.Contains(out, "is not valid for 10.0.0.9, the host in etcd.peerURL") {
		t.Errorf("%v, the file: %v: %s", exit, err, out)
	}
	if out, err := initAt("10.0.0.2"); err != nil {
		t.Errorf("at the address in the certificates: %v: %s", err, out)
	}
}
