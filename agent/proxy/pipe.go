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
	// mostPipes bounds the pipes of a loop. Further sides that do not read hold their data in buffers, which are
	// smaller.
	mostPipes = 8
	// littleBytes is how much is too little for a pipe: its extra call per message costs more than a second copy.
	littleBytes = chunk / 2
)

// pipe moves large transfers from one connection to another without a copy: the kernel passes its pages on.
type pipe struct {
	read, write int
	left        int // bytes in it
}

// newPipe returns a new pipe, or nil if the kernel has none to spare. Then buffers are used.
func newPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeBytes) // a smaller pipe works, with less at a time
	return &pipe{read: fds[0], write: fds[1]}
}

func (p *pipe) close() { _, _ = unix.Close(p.read), unix.Close(p.write) }

// fill moves data from a connection into the pipe. It returns 0 after the last byte.
func (p *pipe) fill(from, most int) (n int, err error) {
	n, err = splice(from, p.write, most)
	p.left += n
	return n, err
}

// empty moves as much to a connection as that accepts at once.
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

// pour moves up to most bytes from a side through a pipe. It returns how many, and whether there may be more.
func (l *loop) pour(e *end, most int) (n int, more bool, err error) {
	p := l.pipe()
	if p == nil {
		e.much = false
		return 0, true, nil
	}
	n, err = p.fill(e.fd, min(most, pipeBytes))
	switch {
	case errors.Is(err, unix.EAGAIN):
		e.ready = e.last
		e.much = false
		return 0, e.last, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS):
		// what splice cannot move goes through a buffer
		l.pipeless, e.much = true, false
		return 0, true, nil
	case err != nil:
		return n, false, err
	case n == 0:
		l.half(e)
		return n, false, nil
	}
	e.much = n >= min(most, littleBytes)
	if err := p.empty(e.other.fd); err != nil {
		l.drained = nil // data may be left in it
		p.close()
		l.pipes--
		return n, false, err
	}
	if p.left > 0 {
		e.other.piped, l.drained = p, nil
		return n, false, nil
	}
	return n, true, nil
}

// pipe returns an empty pipe, or nil if there is none.
func (l *loop) pipe() *pipe {
	if l.drained == nil && !l.pipeless && l.pipes < mostPipes {
		if l.drained = newPipe(); l.drained != nil {
			l.pipes++
		}
	}
	return l.drained
}

// keep takes an empty pipe back for reuse, or closes it. One with data left in it must not serve another link.
func (l *loop) keep(p *pipe) {
	if p.left == 0 && l.drained == nil {
		l.drained = p
		return
	}
	p.close()
	l.pipes--
}
