//go:build root

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package roothelper

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestAnotherUserIsRefusedByPeerCredentials(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	if err := errors.Join(os.Chmod(filepath.Dir(socket), 0o755), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	for uid, refused := range map[uint32]bool{12345: false, 12346: true, 0: false} {
		if err := os.Chown(socket, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(tempdir.Self(t), "say", socket)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := c.CombinedOutput()
		if err != nil || strings.Contains(string(out), "may not send orders on this socket") != refused {
			t.Errorf("user %d: %s, %v", uid, out, err)
		}
	}
}
