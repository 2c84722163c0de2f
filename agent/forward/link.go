// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunk = 32 << 10 // bytes that are carried at a time
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

// link is a client's connection, and that to the voter which it goes to.
type link struct {
	client, voter *net.TCPConn
	spare         *chunks
}

// close ends both, and what carries between them.
func (l *link) close() {
	_, _ = l.client.Close(), l.voter.Close() // what is closed already stays so
}

// carry begins to carry bytes both ways. When both ways have ended, both connections are closed, and ended is called.
func (l *link) carry(all *sync.WaitGroup, ended func()) {
	var over atomic.Int32
	begin := func(from, to *net.TCPConn, half time.Duration) {
		all.Go(func() {
			l.way(from, to, half)
			if over.Add(1) == 2 {
				l.close()
				ended()
			}
		})
	}
	begin(l.voter, l.client, voterHalf)
	begin(l.client, l.voter, clientHalf)
}

// way carries what from sends to the other. An orderly end is handed on, and what then comes the other way has its
// bound; anything else ends both at once, for the client to see.
func (l *link) way(from, to *net.TCPConn, half time.Duration) {
	if err := l.spare.carry(from, to); err != nil {
		_ = l.client.SetLinger(0) // it may be closed already
		l.close()
		return
	}
	_ = to.CloseWrite() // one that is closed already needs no word
	until := time.Now().Add(half)
	_, _ = to.SetReadDeadline(until), from.SetWriteDeadline(until) // from may read nothing any more, too
}

// chunks are the buffers of what is on its way: there are as many as there are connections with bytes under way, and
// not as there are connections.
type chunks struct{ pool sync.Pool }

func (c *chunks) get() *[chunk]byte {
	if b, ok := c.pool.Get().(*[chunk]byte); ok {
		return b
	}
	return new([chunk]byte)
}

// carry copies until from says that it sends no more. A buffer is only held while there is something in it.
func (c *chunks) carry(from, to *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	var buffer *[chunk]byte
	var n int
	var failed error
	read := func(fd uintptr) bool {
		buffer = c.get()
		for {
			n, failed = unix.Read(int(fd), buffer[:])
			if failed != unix.EINTR {
				break
			}
		}
		if failed != nil {
			c.pool.Put(buffer)
			buffer, n = nil, 0
		}
		return failed != unix.EAGAIN
	}
	for {
		if err := raw.Read(read); err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
		if n == 0 {
			c.pool.Put(buffer)
			return nil
		}
		_, err := to.Write(buffer[:n])
		c.pool.Put(buffer)
		if err != nil {
			return err
		}
	}
}

// reset ends a connection so that the other side sees an error and no orderly end.
func reset(c *net.TCPConn) {
	_, _ = c.SetLinger(0), c.Close() // one that is gone already needs none
}
