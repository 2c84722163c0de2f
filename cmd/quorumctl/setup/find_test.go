// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func answers() Answers {
	return Answers{
		Name: "n1", Hosts: []string{"n1=127.0.0.1", "n2=10.0.0.2", "n3=10.0.0.3"}, Cluster: "prod", Mode: "observe",
	}
}

func TestWhatAHostHasIsFound(t *testing.T) {
	t.Parallel()
	a := answers()
	a.DataDir, a.Binary = filepath.Join(t.TempDir(), "not", "there", "yet"), testbed.Etcd(t, testbed.DefaultVersion)
	f, err := Find(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if f.Interface != "lo" || f.Binary != a.Binary || !strings.HasPrefix(f.Version, "3.") || f.FreeBytes == 0 ||
		!strings.Contains(f.Disk, " on ") {
		t.Errorf("%+v", f)
	}
}

func TestAHostThatIsNotTheOneThatWasNamedIsWarnedOf(t *testing.T) {
	t.Parallel()
	a := answers()
	a.Name = "n2"
	f, err := Find(t.Context(), a)
	said := strings.Join(f.Warnings, "\n")
	if err != nil || !strings.Contains(said, "no interface of this host has 10.0.0.2: is this n2?") {
		t.Errorf("%q %v", f.Warnings, err)
	}
}

func TestAnOldEtcdIsNamedWithWhatReplacesIt(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho etcd Version: 3.4.23\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := answers()
	a.Binary = old
	f, err := Find(t.Context(), a)
	said := strings.Join(f.Warnings, "\n")
	if err != nil || f.Version != "3.4.23" || !strings.Contains(said, "etcd 3.4.23 is older than") ||
		!strings.Contains(said, "quorumd-etcd") {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAProgramThatDoesNotAnswerLikeEtcdIsSaidToBeNone(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := answers()
	a.Binary = other
	f, err := Find(t.Context(), a)
	if said := strings.Join(f.Warnings, "\n"); err != nil || f.Version != "" ||
		!strings.Contains(said, "its version: it does not answer like etcd") {
		t.Errorf("%+v %v", f, err)
	}
}

// TestHowARunningEtcdIsSetIsRead has a process with etcd's flags and variables.
func TestHowARunningEtcdIsSetIsRead(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "sh", "-c", "echo; read x", "etcd", "--name", "other", "-data-dir=/data")
	c.Env = []string{
		"ETCD_NAME=not-this", "ETCD_ADVERTISE_CLIENT_URLS=http://127.0.0.1:2379,http://10.9.9.9:2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=http://10.9.9.9:2380",
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // before that the kernel may still show who has started it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait() // the shell says that there was nothing to read
	})
	var f Found
	f.findRunning(strconv.Itoa(c.Process.Pid))
	if f.Running["name"] != "other" || f.Running["data-dir"] != "/data" || len(f.Running) != 4 {
		t.Fatalf("%v %v", f.Running, f.Warnings)
	}
	text, err := answers().Text()
	if err != nil {
		t.Fatal(err)
	}
	conf, err := config.Parse("quorumd.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(f.Differs(conf), "\n")
	for _, want := range []string{"--name=other, and host.name is n1", "--data-dir=/data", "10.9.9.9:2380"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if strings.Contains(said, "advertise-client-urls") {
		t.Errorf("a URL among several is the right one:\n%s", said)
	}
	f = Found{}
	f.findRunning("../../etc")
	if len(f.Running) > 0 || len(f.Warnings) != 1 {
		t.Errorf("%v %q", f.Running, f.Warnings)
	}
}

func TestAHostThatIsNamedByDNSListensOnAllAddresses(t *testing.T) {
	t.Parallel()
	a := answers()
	a.Hosts[0], a.TLS = "n1=n1.example.com", "/etc/quorumd/tls"
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("quorumd.yaml", text)
	if err != nil || c.Etcd.ListenClientURL != "https://0.0.0.0:2379" ||
		c.Etcd.ClientURL != "https://n1.example.com:2379" {
		t.Errorf("%v\n%s", err, text)
	}
}
