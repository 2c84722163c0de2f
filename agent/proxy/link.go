// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// clientHalf is how long a client may still receive after it closed its sending side. voterHalf is how long a
	// client may take, after its voter closed the voter's sending side, to read the last data and to close the client's
	// sending side.
	clientHalf = time.Minute
	voterHalf  = 5 * time.Second
	// silenceBound is how long a voter's machine may leave data or a keepalive probe unacknowledged before the
	// connection is closed.
	silenceBound = 30 * time.Second
)

// keepAlive returns settings that detect, on an idle connection, that a voter's machine has lost power: three probes
// within silenceBound. With TCP_USER_TIMEOUT set, Linux ignores the number of probes: it closes a connection when the
// first probe after that timeout is due and an earlier one is unacknowledged.
func keepAlive() net.KeepAliveConfig {
	const interval, count = 5 * time.Second, 3
	return net.KeepAliveConfig{Enable: true, Idle: silenceBound - count*interval, Interval: interval, Count: count}
}

// boundSilence sets on a socket how long data or a probe may stay unacknowledged.
func boundSilence(_, _ string, conn syscall.RawConn) (err error) {
	outer := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceBound.Milliseconds()))
	})
	if outer != nil {
		return outer
	}
	return err
}

// link joins a client's connection and the connection to its voter. A loop copies between them.
type link struct {
	client, voter end
	loop          *loop
	ended         func() // called once, when both sides are closed
	closed        bool
}

// close closes both sides, if they are still open.
func (k *link) close() { k.loop.dropLink(k) }

// end is one side of a link.
type end struct {
	fd    int
	link  *link
	other *end

	ready          bool         // there may be data to read
	bulk           bool         // the last read filled a buffer, so a pipe is worthwhile
	peerClosed     bool         // the peer has closed its sending side
	closeForwarded bool         // the close was forwarded to the other side
	queued         bool         // to be served in the next iteration even without an event
	waiting        []byte       // data that this side has not accepted yet
	buffer         *[chunk]byte // the buffer that holds waiting
	pipe           *pipe        // the pipe that holds data for this side
	serial         int32        // distinguishes this descriptor from an earlier one with the same number
}

// full reports whether data waits for this side to accept it.
func (e *end) full() bool { return len(e.waiting) > 0 || e.pipe != nil }

// newLink takes two connections out of Go's runtime, whose poller would wake a goroutine for each message. It closes
// them on an error.
func newLink(l *loop, client, voter *net.TCPConn, ended func()) (*link, error) {
	k := &link{loop: l, ended: ended}
	k.client = end{link: k, other: &k.voter, fd: -1}
	k.voter = end{link: k, other: &k.client, fd: -1}
	err := errors.Join(k.client.take(client), k.voter.take(voter))
	if err != nil {
		_, _ = unix.Close(k.client.fd), unix.Close(k.voter.fd) // fd is -1 if take failed
		return nil, fmt.Errorf("cannot adopt a connection: %w", err)
	}
	return k, nil
}

// take duplicates the descriptor of a connection and closes the original.
func (e *end) take(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return errors.Join(err, c.Close())
	}
	outer := raw.Control(func(fd uintptr) {
		var own int
		if own, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			e.fd = own
		}
	})
	return errors.Join(outer, err, c.Close())
}

// reset closes a connection with a reset, so that the peer sees an error instead of EOF.
func reset(c *net.TCPConn) {
	_, _ = c.SetLinger(0), c.Close() // fails only if it is already closed
}

// resetOnClose makes a later close of the descriptor send a reset.
func resetOnClose(fd int) {
	// fails only if the descriptor is already closed
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}
