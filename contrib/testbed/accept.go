// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// AcceptYes accepts connections as systemd does for a socket unit with Accept=yes, until the test ends. For each
// connection, one after another, it runs the test's own program with these arguments and the connection as its standard
// input. It returns the path of the socket, which has its own directory.
func AcceptYes(t *testing.T, args ...string) string {
	t.Helper()
	socket := filepath.Join(tempdir.New(t), "socket")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			file, err := conn.File()
			conn.Close()
			if err != nil {
				t.Error(err)
				return
			}
			command := exec.Command("/proc/self/exe", args...)
			command.Stdin = file
			_ = command.Run() // the program reports errors over the socket
			file.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return socket
}
