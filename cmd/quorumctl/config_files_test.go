// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/fileaccess"
)

func TestConfigCheckReportsKeyReadableByOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "client.key"), filepath.Join(dir, "q.yaml")
	text := fmt.Sprintf("cluster: {name: prod, endpoints: [\"https://192.0.2.1:2379\"], tls: {cert: %[1]s, key: "+
		"%[1]s}}\n", key) +
		"etcd: {clientURL: \"https://192.0.2.1:2379\", peerURL: \"https://192.0.2.1:2380\"}\n"
	for path, text := range map[string]string{key: "none", file: text} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const open = "allows full access to etcd, but is readable by every user on this host; run: chown quorumd: "
	if r := quorumctl(t, "SOCKET", "config", "check", "-o", "wide", file); r.code != exitConfig ||
		strings.Contains(r.stderr, "is readable by") {
		t.Errorf("a closed key: exit %d: %s", r.code, r.stderr)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := quorumctl(t, "SOCKET", "config", "check", "-o", "wide", file); r.code != exitConfig ||
		!strings.Contains(r.stderr, open) {
		t.Errorf("an open key: exit %d: %s", r.code, r.stderr)
	}
}

func TestConfigCheckReportsWhoseAccessItChecked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "q.yaml")
	text := "host: {id: n1}\ncluster: {name: prod, endpoints: [\"http://127.0.0.1:2379\"]}\netcd: {clientURL: " +
		"\"http://127.0.0.1:2379\", peerURL: \"http://127.0.0.1:2380\", runner: process, binary: " + program(t) + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	me := fileaccess.CurrentUser()
	if r := quorumctl(t, "SOCKET", "config", "check", "-o", "wide", "--as", me, file); r.code != exitOK ||
		r.stdout != file+": OK\n  checked as "+me+"\n" {
		t.Errorf("as oneself: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	r := quorumctl(t, "SOCKET", "config", "check", "-o", "wide", "--as", "no-such-user", file)
	if r.code == exitOK || !strings.Contains(r.stderr, "cannot check access as no-such-user: ") {
		t.Errorf("as an unknown user: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
