// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestConfigCheckRefusesAProxyOnAPortOfTheRunningEtcd runs a real etcd, set up by hand, that listens on a port missing
// from quorumd's configuration, and uses a systemctl that reports this etcd.
func TestConfigCheckRefusesAProxyOnAPortOfTheRunningEtcd(t *testing.T) {
	t.Parallel()
	ports, dir := testbed.FreePorts(t, 4), t.TempDir()
	at := func(host, port int) string { return fmt.Sprintf("127.0.0.%d:%d", host, ports[port]) }
	m, err := testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "n1", Dir: t.TempDir(), ClientURL: "http://" + at(2, 0),
		PeerURL:         "http://" + at(2, 1),
		ListenClientURL: "http://" + at(2, 0) + ",http://" + at(1, 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.StopAfter(t)
	systemctl := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = show ] && echo ActiveState=active && echo MainPID=%d\n", m.PID())
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(systemctl), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "q.yaml")
	for listen, refused := range map[string]bool{at(1, 2): true, at(1, 3): false, "": false} {
		text := fmt.Sprintf("host: {id: h}\ncluster: {name: prod, endpoints: ['http://%[1]s']}\netcd: {clientURL: "+
			"'http://%[1]s', peerURL: 'http://%[2]s', binary: %[4]s}\nproxy: {listen: '%[3]s'}\n", at(2, 0), at(2, 1),
			listen,
			m.Options.Binary)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := asProgram(t, "PATH="+dir, "config", "check", file)
		want := "proxy.listen (" + listen + ") and the running etcd (etcd.service, http://" + listen +
			") listen on the same address and port"
		if (err != nil) != refused || strings.Contains(out, want) != refused {
			t.Errorf("proxy.listen %q: %v: %s", listen, err, out)
		}
		if out, err := asProgram(t, "PATH="+dir, "config", "check", "--elsewhere", file); err != nil {
			t.Errorf("proxy.listen %q on another host: %v: %s", listen, err, out)
		}
	}
}
