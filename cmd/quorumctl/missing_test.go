// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigCheckFindsWhatIsMissingOnThisHost uses a systemctl that answers like the host of each case.
func TestConfigCheckFindsWhatIsMissingOnThisHost(t *testing.T) {
	t.Parallel()
	const loaded = "LoadState=loaded\nUser=root"
	good := map[string]string{
		"ENDPOINT": "http://127.0.0.1:2379", "CLIENT": "http://127.0.0.1:2379", "PEER": "http://127.0.0.1:2380",
		"BINARY": program(t), "STORE": t.TempDir(), "UNIT": loaded, "MODE": "0644",
	}
	for name, c := range map[string]struct{ what, is, says string }{
		"nothing is missing": {"MODE", "0644", ""},
		"a placeholder among the endpoints": {
			"ENDPOINT", "http://192.0.2.1:2379", "cluster.endpoints: 192.0.2.1 is a documentation address",
		},
		"a placeholder of this host": {
			"PEER", "http://[2001:db8::1]:2380", "etcd.peerURL: 2001:db8::1 is a documentation address",
		},
		"another host's address": {
			"CLIENT", "http://240.0.0.1:2379", "etcd.clientURL: no interface of this host has 240.0.0.1",
		},
		"a loopback address for the other hosts": {
			"ENDPOINT", "http://other.example:2379", "etcd.peerURL: no other host can reach 127.0.0.1",
		},
		"no program": {"BINARY", "/nowhere/etcd", "etcd.binary: /nowhere/etcd does not exist"},
		"no unit":    {"UNIT", "LoadState=not-found", "etcd.unit: unit etcd.service does not exist; install etcd"},
		"no user": {
			"UNIT", "LoadState=loaded\nUser=no-such-user", "runs as user no-such-user, which does not exist",
		},
		"no store":           {"STORE", "/nowhere/store", "backup.store.directory: /nowhere/store is not a directory"},
		"an open file":       {"MODE", "0666", "(mode 0666); run chmod go-w"},
		"no systemd answers": {"UNIT", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := func(key string) string {
				if key == c.what {
					return c.is
				}
				return good[key]
			}
			dir := t.TempDir()
			file, systemctl := filepath.Join(dir, "q.yaml"), filepath.Join(dir, "systemctl")
			put := func(path, text string, mode os.FileMode) {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, mode); err != nil { // whatever the umask
					t.Fatal(err)
				}
			}
			mode := os.FileMode(0o644)
			if value("MODE") == "0666" {
				mode = 0o666
			}
			put(file, fmt.Sprintf("host: {id: h}\ncluster: {name: prod, endpoints: [%q]}\n"+
				"etcd: {clientURL: %q, peerURL: %q, binary: %q}\nbackup: {store: {directory: %q}}\n",
				value("ENDPOINT"), value("CLIENT"), value("PEER"), value("BINARY"), value("STORE")), mode)
			put(systemctl, "#!/bin/sh\n[ \"$1\" = show ] && echo '"+value("UNIT")+"'\nexit 0\n", 0o755)
			put(filepath.Join(dir, "getent"), "#!/bin/sh\n[ \"$3\" = root ] || exit 2\n", 0o755)
			out, err := asProgram(t, "PATH="+dir, "config", "check", file)
			if (err != nil) != (c.says != "") || !strings.Contains(out, c.says) {
				t.Errorf("%v: %s", err, out)
			}
			if out, err := asProgram(t, "PATH="+dir, "config", "check", "--elsewhere", file); err != nil {
				t.Errorf("on another host: %v: %s", err, out)
			}
		})
	}
}
