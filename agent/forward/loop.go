// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunk = 32 << 10 // bytes that are carried at a time
	batch = 128      // connections that are served before others may look at a link
)

// loop carries the bytes of all links in one goroutine. It has an epoll of its own, which tells who has sent something,
// and that is an ordinary file to Go's poller: a goroutine for each way of each connection would cost a stack each, and
// for every message one more call to learn that there is no second one.
type loop struct {
	poll *os.File
	raw  syscall.RawConn

	mu     sync.Mutex
	ends   map[int32]*end
	halves map[*link]time.Time // of which one side sends no more, and when the other must have ended
	buffer []byte              // what is on its way just now
	events []unix.EpollEvent
	closed bool
}

func newLoop() (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot wait for many connections: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else Go's poller does not take it
		return nil, errors.Join(err, unix.Close(fd))
	}
	l := &loop{
		poll: os.NewFile(uintptr(fd), "epoll"), ends: map[int32]*end{}, halves: map[*link]time.Time{},
		buffer: make([]byte, chunk), events: make([]unix.EpollEvent, batch),
	}
	if l.raw, err = l.poll.SyscallConn(); err != nil {
		return nil, errors.Join(err, l.poll.Close())
	}
	return l, nil
}

// run carries until close.
func (l *loop) run() error {
	err := l.raw.Read(func(fd uintptr) bool {
		for l.turn(int(fd)) {
		}
		return false
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // that it reads from a closed file has no error of its own
		return nil
	}
	return err
}

// turn serves those that have something now, and tells whether there were any.
func (l *loop) turn(fd int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	n, err := unix.EpollWait(fd, l.events, 0)
	if err != nil {
		return errors.Is(err, unix.EINTR)
	}
	for _, event := range l.events[:n] {
		if e := l.ends[event.Fd]; e != nil { // else its link has ended in this turn
			l.serve(e, event.Events)
		}
	}
	return n > 0
}

// serve does for one side of a link what it is ready for.
func (l *loop) serve(e *end, ready uint32) {
	var err error
	switch {
	case ready&unix.EPOLLOUT != 0 && len(e.waiting) > 0:
		err = l.flush(e)
	case ready&unix.EPOLLIN != 0 || ready != 0 && e.asked&unix.EPOLLIN != 0: // an error is what is read then
		err = l.carry(e)
	default:
		err = unix.ECONNRESET // nothing is asked of it, and it is gone
	}
	switch {
	case err == nil || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		if e.said && e.other.said {
			l.end(e.link)
		}
	default:
		resets(e.link.client.fd)
		l.end(e.link)
	}
}

// carry hands on what a side has sent. What the other does not take at once waits, and nothing more is read meanwhile.
func (l *loop) carry(e *end) error {
	n, err := unix.Read(e.fd, l.buffer)
	if err != nil {
		return err
	}
	if n == 0 {
		return l.half(e)
	}
	to := e.other
	sent, err := unix.Write(to.fd, l.buffer[:n])
	if err != nil {
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		sent = 0
	}
	if sent == n {
		return nil
	}
	to.waiting = append([]byte(nil), l.buffer[sent:n]...)
	return errors.Join(l.ask(to, to.asked|unix.EPOLLOUT), l.ask(e, e.asked&^unix.EPOLLIN))
}

// flush hands on what has waited for a side to take it.
func (l *loop) flush(e *end) error {
	sent, err := unix.Write(e.fd, e.waiting)
	if err != nil {
		return err
	}
	if e.waiting = e.waiting[sent:]; len(e.waiting) > 0 {
		return nil
	}
	e.waiting = nil
	return errors.Join(l.ask(e, e.asked&^unix.EPOLLOUT), l.ask(e.other, e.other.asked|unix.EPOLLIN))
}

// half hands on that a side sends no more. What then comes the other way has its bound.
func (l *loop) half(e *end) error {
	e.said = true
	bound := clientHalf
	if e == &e.link.voter {
		bound = voterHalf
	}
	if at, ok := l.halves[e.link]; !ok || time.Now().Add(bound).Before(at) {
		l.halves[e.link] = time.Now().Add(bound)
	}
	if err := unix.Shutdown(e.other.fd, unix.SHUT_WR); err != nil {
		return err
	}
	return l.ask(e, e.asked&^unix.EPOLLIN)
}

// ask says what is to be told about a side.
func (l *loop) ask(e *end, events uint32) (err error) {
	e.asked = events
	outer := l.raw.Control(func(fd uintptr) {
		err = unix.EpollCtl(int(fd), unix.EPOLL_CTL_MOD, e.fd, &unix.EpollEvent{Events: events, Fd: int32(e.fd)})
	})
	return errors.Join(outer, err)
}

// add begins to carry between both sides of a link.
func (l *loop) add(k *link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return os.ErrClosed
	}
	for _, e := range []*end{&k.client, &k.voter} {
		l.ends[int32(e.fd)] = e
		var err error
		outer := l.raw.Control(func(fd uintptr) {
			err = unix.EpollCtl(int(fd), unix.EPOLL_CTL_ADD, e.fd, &unix.EpollEvent{Events: e.asked, Fd: int32(e.fd)})
		})
		if err = errors.Join(outer, err); err != nil {
			return err
		}
	}
	return nil
}

// drop ends a link, if it has not ended.
func (l *loop) drop(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(k)
}

// end ends a link. Files that are closed leave an epoll by themselves.
func (l *loop) end(k *link) {
	if k.over {
		return
	}
	k.over = true
	delete(l.ends, int32(k.client.fd))
	delete(l.ends, int32(k.voter.fd))
	delete(l.halves, k)
	_, _ = unix.Close(k.client.fd), unix.Close(k.voter.fd) // one that was lost needs no more
	k.ended()
}

// overdue ends the links of which one side has ended and the other takes too long.
func (l *loop) overdue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for k, at := range l.halves {
		if now.After(at) {
			resets(k.client.fd)
			l.end(k)
		}
	}
}

// close ends all links, and run.
func (l *loop) close() {
	l.mu.Lock()
	for _, e := range l.ends {
		l.end(e.link)
	}
	l.closed = true
	l.mu.Unlock()
	_ = l.poll.Close() // nothing is left in it
}
