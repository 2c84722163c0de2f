// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
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

func TestFindInspectsTheHost(t *testing.T) {
	t.Parallel()
	a := answers()
	a.DataDir, a.Binary = filepath.Join(t.TempDir(), "not", "there", "yet"), testbed.Etcd(t, testbed.DefaultVersion)
	f, err := Find(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if f.Interface != "lo" || f.Binary != a.Binary || !strings.HasPrefix(f.Version, "3.") || f.FreeBytes == 0 ||
		f.Disk == "" {
		t.Errorf("%+v", f)
	}
}

func TestDiskOfAMountWithoutASourceIsItsTypeAlone(t *testing.T) {
	t.Parallel()
	mounts := "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" +
		"40 22 0:35 / /var/lib/etcd rw,relatime - tmpfs  rw,size=1024k\n" +
		"a line that is cut -\n"
	for dir, want := range map[string]string{
		"/var/lib": "ext4 on /dev/sda1", "/var/lib/etcd": "tmpfs", "/var/lib/etcd/member": "tmpfs",
		"/var/lib/etcd2": "ext4 on /dev/sda1",
	} {
		if got := diskOf(strings.NewReader(mounts), dir); got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
	}
}

func TestAddressOfAnotherHostCausesAWarning(t *testing.T) {
	t.Parallel()
	a := answers()
	a.Name = "n2"
	f, err := Find(t.Context(), a)
	said := strings.Join(f.Warnings, "\n")
	if err != nil || !strings.Contains(said, "no interface of this host has 10.0.0.2: is this host n2?") {
		t.Errorf("%q %v", f.Warnings, err)
	}
}

func TestOldEtcdCausesAWarningWithARemedy(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho etcd Version: 3.4.23\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := answers()
	a.Binary = old
	f, err := Find(t.Context(), a)
	said := strings.Join(f.Warnings, "\n")
	if err != nil || f.Version != "3.4.23" || !strings.Contains(said, "etcd 3.4.23 is too old") ||
		!strings.Contains(said, "quorumd-etcd") {
		t.Errorf("%+v %v", f, err)
	}
}

func TestProgramThatIsNotEtcdCausesAWarning(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := answers()
	a.Binary = other
	f, err := Find(t.Context(), a)
	if said := strings.Join(f.Warnings, "\n"); err != nil || f.Version != "" ||
		!strings.Contains(said, "cannot determine the version of ") {
		t.Errorf("%+v %v", f, err)
	}
}

// runs starts a process with this name, these variables and flags, and returns its PID.
func runs(t *testing.T, name string, variables []string, flags ...string) (pid string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-c", "echo; read x", name}, flags...)...)
	c.Args[0], c.Env = name, variables
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
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait() // the shell fails because its input is closed
	})
	// Before the first output of the process, /proc may show the command line of its parent.
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(c.Process.Pid)
}

func TestListensReadsSettingsAsEtcdDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variables, flags []string
		want             string // the URLs, or the beginning of the error
	}{
		{nil, nil, "[http://localhost:2379 http://localhost:2380]"},
		{
			[]string{"ETCD_LISTEN_CLIENT_URLS=http://10.0.0.1:2379, http://127.0.0.1:2379"},
			[]string{"--listen-peer-urls", "http://10.0.0.1:2380", "--listen-metrics-urls=http://127.0.0.1:2381"},
			"[http://10.0.0.1:2379 http://127.0.0.1:2379 http://10.0.0.1:2380 http://127.0.0.1:2381]",
		},
		{
			[]string{"ETCD_LISTEN_CLIENT_URLS=http://10.0.0.1:2379"},
			[]string{"--listen-client-urls=http://10.0.0.2:2379", "--listen-client-http-urls=http://127.0.0.1:2378"},
			"[http://10.0.0.2:2379 http://127.0.0.1:2378 http://localhost:2380]",
		},
		{
			[]string{"ETCD_LISTEN_CLIENT_URLS=", "ETCD_CONFIG_FILE="},
			nil,
			"[http://localhost:2379 http://localhost:2380]",
		},
		{nil, []string{"--config-file=/etc/etcd.yml"}, "its settings are in /etc/etcd.yml"},
	} {
		urls, err := listens(runs(t, "etcd", c.variables, c.flags...))
		got := fmt.Sprint(urls)
		if err == nil && got != c.want || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q %q: %s %v, want %s", c.variables, c.flags, got, err, c.want)
		}
	}
	if urls, err := listens("../../etc"); err == nil {
		t.Errorf("without a process: %q", urls)
	}
	if urls, err := listens(runs(t, "docker", nil, "run", "etcd")); err == nil ||
		!strings.HasPrefix(err.Error(), "the unit's process is docker, not etcd") {
		t.Errorf("with another program: %q, %v", urls, err)
	}
}

// TestSettingsOfARunningEtcdAreRead runs a process with etcd's flags and variables.
func TestSettingsOfARunningEtcdAreRead(t *testing.T) {
	t.Parallel()
	pid := runs(t, "etcd", []string{
		"ETCD_NAME=not-this", "ETCD_ADVERTISE_CLIENT_URLS=http://127.0.0.1:2379,http://10.9.9.9:2379",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS=http://10.9.9.9:2380",
	}, "--name", "other", "-data-dir=/data", "--cert-file=/pki/server.crt")
	var f Found
	f.findRunning(pid)
	if f.Running["name"] != "other" || f.Running["data-dir"] != "/data" ||
		f.Running["cert-file"] != "/pki/server.crt" || len(f.Running) != 5 {
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
	for _, want := range []string{"--name=other, but host.name is n1", "--data-dir=/data", "10.9.9.9:2380"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if strings.Contains(said, "advertise-client-urls") {
		t.Errorf("a URL among several is not recognized:\n%s", said)
	}
	f = Found{}
	f.findRunning("../../etc")
	if len(f.Running) > 0 || len(f.Warnings) != 1 {
		t.Errorf("%v %q", f.Running, f.Warnings)
	}
}

func TestHostWithADNSNameListensOnAllAddresses(t *testing.T) {
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
