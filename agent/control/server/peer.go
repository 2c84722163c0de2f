// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection. The kernel records it when the process connects.
type peer struct {
	pid    int
	uid    uint32
	gid    uint32
	groups []uint32 // supplementary
}

type peerKey struct{}

// withPeer is the server's ConnContext: it adds the peer to the context of every request on a connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, c.peer)
	}
	return ctx
}

// peerFrom returns the sender of a request. Without a sender, a request has no permission to change anything.
func peerFrom(ctx context.Context) (peer, bool) {
	p, ok := ctx.Value(peerKey{}).(peer)
	return p, ok
}

// peerOf asks the kernel for the peer of a connection.
func peerOf(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("cannot read the peer's credentials: %w", err)
	}
	var p peer
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = os.NewSyscallError("getsockopt SO_PEERCRED", err)
			return
		}
		groups, err := peerGroups(fd)
		if err != nil {
			failed = os.NewSyscallError("getsockopt SO_PEERGROUPS", err)
			return
		}
		p = peer{pid: int(cred.Pid), uid: cred.Uid, gid: cred.Gid, groups: groups}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return peer{}, fmt.Errorf("cannot read the peer's credentials: %w", err)
	}
	return p, nil
}

// peerGroups returns the supplementary groups of the peer, as the kernel recorded them. A look-up by user name would
// miss groups from a directory service, and would include groups that the process has dropped. peerGroups uses
// unsafe because x/sys has no call for this option.
func peerGroups(fd uintptr) ([]uint32, error) {
	const most = 65536 // NGROUPS_MAX
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups)) * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		runtime.KeepAlive(groups)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == unix.ERANGE && size/4 > uint32(len(groups)) && size/4 <= most: // the kernel has set size
			groups = make([]uint32, size/4)
		default:
			return nil, errno
		}
	}
}
