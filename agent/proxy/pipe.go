// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// pipeBytes is how much one takes of what waits in the kernel, and so at most what a side leaves in it that does
	// not read.
	pipeBytes = 256 << 10
	// mostPipes bounds them in a loop: of more sides that take nothing what waits lies in buffers, which are smaller.
	mostPipes = 8
	// littleBytes is what a pipe is not worth: one call more for each message costs more than to copy it twice.
	littleBytes = chunk / 2
)

// pipe carries what is much from one connection to another without a copy: the kernel hands its pages on.
type pipe struct {
	read, write int
	left        int // bytes in it
}

// newPipe gives one, or nil where the machine has none to give: then there are buffers.
func newPipe() *pipe {
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, pipeBytes) // a smaller one carries less at a time
	return &pipe{read: fds[0], write: fds[1]}
}

func (p *pipe) close() { _, _ = unix.Close(p.read), unix.Close(p.write) }

// fill takes of what a connection has sent; 0 when it has sent its last.
func (p *pipe) fill(from, most int) (n int, err error) {
	n, err = splice(from, p.write, most)
	p.left += n
	return n, err
}

// empty hands on as much as is taken at once.
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

// pour carries what a side sends much of, at most so many bytes. It tells how many, and whether there may be more.
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
		// what splice cannot carry, or may not, goes through a buffer
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
		l.drained = nil // it is the link's no more, nor fit for another
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

// pipe gives an empty one; nil when there is none.
func (l *loop) pipe() *pipe {
	if l.drained == nil && !l.pipeless && l.pipes < mostPipes {
		if l.drained = newPipe(); l.drained != nil {
			l.pipes++
		}
	}
	return l.drained
}

// keep takes back a pipe that nothing is in any more, or closes it: with what is left in it, it fits nobody else.
func (l *loop) keep(p *pipe) {
	if p.left == 0 && l.drained == nil {
		l.drained = p
		return
	}
	p.close()
	l.pipes--
}
