// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/datadir"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMatrixLogOfEtcd35 checks with real etcds of three versions that quorumd predicts whether etcd 3.7 can read a log.
func TestMatrixLogOfEtcd35(t *testing.T) {
	t.Parallel()
	ports := testbed.FreePorts(t, 2)
	member, err := testbed.StartMember(t.Context(), testbed.MemberOptions{
		Binary: testbed.Etcd(t, "v3.5"), Name: "n1", Dir: t.TempDir(),
		ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		PeerURL:   fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	})
	must(t, err)
	ready := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		return member.WaitReady(ctx)
	}
	restart := func(version string) {
		t.Helper()
		must(t, member.Terminate())
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		_ = member.Wait(ctx) // Wait returns an error, because the signal ends the process
		member.Options.Binary = testbed.Etcd(t, version)
		must(t, member.Restart(t.Context()))
	}
	must(t, ready())
	restart("v3.6")
	must(t, ready())
	if l := logOf(t, member); l.Old == 0 || l.Snapshot != 0 {
		t.Errorf("after the upgrade to 3.6: %+v", l)
	}

	restart("v3.7")
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	exited := member.Wait(ctx)
	text, err := os.ReadFile(member.LogPath())
	must(t, err)
	if exited == nil || !strings.Contains(string(text), "unmarshal should never fail") {
		t.Fatalf("etcd 3.7 ended with %v, and did not fail as expected", exited)
	}

	member.Options.Binary = testbed.Etcd(t, "v3.6")
	member.Options.Extra = []string{"--snapshot-count=100"}
	must(t, member.Restart(t.Context()))
	must(t, ready())
	client, err := member.Client()
	must(t, err)
	defer client.Close()
	for i := range 250 {
		_, err := client.Put(t.Context(), "k", fmt.Sprint(i))
		must(t, err)
	}
	testbed.Eventually(t, bound, "the newest snapshot is newer than every entry of etcd 3.5", func() bool {
		l := logOf(t, member)
		return l.Old == 0 && l.Snapshot > 0
	})
	restart("v3.7")
	must(t, ready())
	if l := logOf(t, member); l.Old != 0 {
		t.Errorf("with etcd 3.7: %+v", l)
	}
}

// logOf reads the log of a running member, as an agent does.
func logOf(t *testing.T, m *testbed.Member) datadir.Log {
	t.Helper()
	self, err := os.Executable() // also runs the agent's children; see TestMain
	must(t, err)
	l, err := datadir.Dir{Command: []string{self}, DataDir: filepath.Join(m.Options.Dir, "data")}.Log(t.Context())
	must(t, err)
	return l
}
