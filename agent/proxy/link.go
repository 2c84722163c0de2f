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
	// clientHalf is how long a client that has said that it sends no more may still be answered, and voterHalf how long
	// one may take to read the end of what it was sent by a voter that is gone.
	clientHalf = time.Minute
	voterHalf  = 5 * time.Second
	// silenceBound is how long a voter's machine may leave what was sent unanswered, or what was asked while nothing
	// was: then it is gone, and the connection ends.
	silenceBound = 30 * time.Second
)

// keepAlive asks a voter's machine whether it is still there, where nothing moves: one that has lost its power says
// nothing. It asks three times before silenceBound is over: with that bound set, Linux counts no questions, and ends a
// connection at the first that finds the bound over and one unanswered.
func keepAlive() net.KeepAliveConfig {
	const interval, count = 5 * time.Second, 3
	return net.KeepAliveConfig{Enable: true, Idle: silenceBound - count*interval, Interval: interval, Count: count}
}

// boundSilence bounds how long what was sent, or asked, may stay unanswered.
func boundSilence(_, _ string, conn syscall.RawConn) (err error) {
	outer := conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceBound.Milliseconds()))
	})
	if outer != nil {
		return outer
	}
	return err
}

// link is a client's connection, and that to the voter which it goes to. A loop carries between them.
type link struct {
	client, voter end
	loop          *loop
	ended         func() // is called once, when both are closed
	over          bool
}

// close ends both sides, if they have not ended.
func (k *link) close() { k.loop.drop(k) }

// end is one side of a link.
type end struct {
	fd    int
	link  *link
	other *end

	ready   bool         // it may have sent something
	much    bool         // what it sends fills a buffer at a time
	last    bool         // what it has sent is the last
	said    bool         // that has been handed on
	queued  bool         // it has a turn without being told of
	waiting []byte       // what it has not taken yet
	held    *[chunk]byte // where that lies
	piped   *pipe        // or where that lies in the kernel
	serial  int32        // tells it from an earlier one of the same number
}

// full tells whether something waits for a side to take it.
func (e *end) full() bool { return len(e.waiting) > 0 || e.piped != nil }

// newLink takes two connections out of Go's hands: it would wake somebody for each of their messages, too.
func newLink(l *loop, client, voter *net.TCPConn, ended func()) (*link, error) {
	k := &link{loop: l, ended: ended}
	k.client = end{link: k, other: &k.voter, fd: -1}
	k.voter = end{link: k, other: &k.client, fd: -1}
	err := errors.Join(k.client.take(client), k.voter.take(voter))
	if err != nil {
		_, _ = unix.Close(k.client.fd), unix.Close(k.voter.fd) // what was not taken is no file
		return nil, fmt.Errorf("cannot take over a connection: %w", err)
	}
	return k, nil
}

// take takes a connection, which is closed for Go.
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

// reset ends a connection so that the other side sees an error and no orderly end.
func reset(c *net.TCPConn) {
	_, _ = c.SetLinger(0), c.Close() // one that is gone already needs none
}

// resets has a connection end so when it is closed.
func resets(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // as above
}
