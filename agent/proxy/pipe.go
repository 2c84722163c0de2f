// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// pipeBytes is the size of a pipe, and so the most it holds for a side that does not read.
	pipeBytes = 256 << 10
	// maxPipes limits the pipes of a loop. Data for further slow readers is held in buffers, which are smaller.
	maxPipes = 8
	// littleBytes is the transfer size below which a pipe is slower: its extra system call costs more than a copy.
	littleBytes = chunk / 2
)

// pipe moves large transfers from one connection to another without copying them: the kernel moves the pages.
type pipe struct {
	read, write int
	left        int // number of bytes in the pipe
}

// newPipe returns a new pipe, or nil if the kernel refuses one.
func newPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC) != nil {
		return nil
	}
	// a smaller pipe works too, but moves less at a time
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeBytes)
	return &pipe{read: fds[0], write: fds[1]}
}

func (p *pipe) close() { _, _ = unix.Close(p.read), unix.Close(p.write) }

// fill moves data from a connection into the pipe. It returns 0 at the end of the data.
func (p *pipe) fill(from, most int) (n int, err error) {
	n, err = splice(from, p.write, most)
	p.left += n
	return n, err
}

// empty moves as much data to a connection as it accepts without blocking.
func (p *pipe) empty(to int) error {
	for p.left > 0 {
		n, err := splice(p.read, to, p.left)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err != nil {
			return err
		}
		p.left -= n
	}
	return nil
}

func splice(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if !errors.Is(err, unix.EINTR) {
			return int(max(n, 0)), err
		}
	}
}

// spliceFrom moves bytes from a side through a pipe, at most the given number. It returns how many it moved, and
// whether copyFrom continues. If there is no pipe, or the kernel cannot splice, it moves nothing and copyFrom
// continues with a buffer.
func (l *loop) spliceFrom(e *end, most int) (n int, more bool, err error) {
	p := l.pipe()
	if p == nil {
		e.bulk = false
		return 0, true, nil
	}
	n, err = p.fill(e.fd, min(most, pipeBytes))
	switch {
	case errors.Is(err, unix.EAGAIN):
		e.ready = e.peerClosed
		e.bulk = false
		return 0, e.peerClosed, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS):
		l.pipeless, e.bulk = true, false
		return 0, true, nil
	case err != nil:
		return n, false, err
	case n == 0:
		l.halfClose(e)
		return n, false, nil
	}
	e.bulk = n >= min(most, littleBytes)
	if err := p.empty(e.other.fd); err != nil {
		l.freePipe = nil // the pipe may still contain data
		p.close()
		l.pipes--
		return n, false, err
	}
	if p.left > 0 {
		e.other.pipe, l.freePipe = p, nil
		return n, false, nil
	}
	return n, true, nil
}

// pipe returns the free pipe, or else a new one. It returns nil if no pipe is free and none can be created.
func (l *loop) pipe() *pipe {
	if l.freePipe == nil && !l.pipeless && l.pipes < maxPipes {
		if l.freePipe = newPipe(); l.freePipe != nil {
			l.pipes++
		}
	}
	return l.freePipe
}

// recycle keeps a pipe for reuse if it is empty and no other pipe is free. Otherwise it closes the pipe, because data
// left in it must not reach a different link.
func (l *loop) recycle(p *pipe) {
	if p.left == 0 && l.freePipe == nil {
		l.freePipe = p
		return
	}
	p.close()
	l.pipes--
}
