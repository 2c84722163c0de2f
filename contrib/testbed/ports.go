// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// FreePorts returns n TCP ports that stay reserved until the test ends: no other program gets them on any loopback
// address. The test itself may listen on them, so a member that was killed finds its port free again.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	ports, release, err := ReservePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return ports
}

// ReservePorts is like FreePorts, outside a test. The ports stay reserved until release is called.
//
// A socket that is bound to a port but never listens reserves it. If it and a listening socket set SO_REUSEADDR, as
// Go does, Linux lets a program listen on that port explicitly, but does not assign the port to a program that requests
// any free port or opens a connection.
func ReservePorts(n int) (ports []int, release func(), err error) {
	var sockets []*os.File
	release = func() {
		for _, s := range sockets {
			s.Close()
		}
	}
	for range n {
		socket, addr, err := reserve(netip.AddrPortFrom(netip.IPv4Unspecified(), 0))
		if err != nil {
			release()
			return nil, nil, err
		}
		sockets = append(sockets, socket)
		ports = append(ports, int(addr.Port()))
	}
	return ports, release, nil
}

// reserve binds a socket to an IPv4 address; port 0 means any. Closing the socket releases the port.
func reserve(addr netip.AddrPort) (*os.File, netip.AddrPort, error) {
	if !addr.Addr().Is4() {
		return nil, addr, fmt.Errorf("cannot reserve a port on %s: not an IPv4 address", addr.Addr())
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, addr, fmt.Errorf("cannot reserve a port: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "reserved port")
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}))
	if err != nil {
		socket.Close()
		return nil, addr, fmt.Errorf("cannot reserve the port %s: %w", addr, err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		socket.Close()
		return nil, addr, fmt.Errorf("cannot reserve a port: %w", err)
	}
	bound, ok := name.(*unix.SockaddrInet4)
	if !ok {
		socket.Close()
		return nil, addr, fmt.Errorf("cannot reserve a port: bound to %T", name)
	}
	return socket, netip.AddrPortFrom(addr.Addr(), uint16(bound.Port)), nil
}
