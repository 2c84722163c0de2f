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
	chunk  = 32 << 10 // bytes that are carried at a time
	chunks = 8        // that are carried of one connection before others have their turn
	batch  = 128      // connections that are served before others may look at a link
)

// told is what the epoll tells of a connection: once, when it has become so.
const told = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// loop carries the bytes of all links in one goroutine. It has an epoll of its own, which tells who has sent something,
// and that is an ordinary file to Go's poller: a goroutine for each way of each connection would cost a stack each, and
// for every message one more call to learn that there is no second one.
type loop struct {
	poll *os.File
	raw  syscall.RawConn

	mu     sync.Mutex
	ends   map[int32]*end
	halves map[*link]time.Time // of which one side sends no more, and when the other must have ended
	buffer *[chunk]byte        // for what is on its way just now
	spare  []*[chunk]byte      // some that nothing waits in any more
	more   []*end              // of whom there may be more than they had a turn for
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
		buffer: new([chunk]byte), events: make([]unix.EpollEvent, batch),
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
	again := l.more
	l.more = nil
	for _, event := range l.events[:n] {
		if e := l.ends[event.Fd]; e != nil { // else its link has ended in this turn
			l.serve(e, event.Events)
		}
	}
	for _, e := range again {
		e.queued = false
		if !e.link.over {
			l.serve(e, 0)
		}
	}
	return n > 0 || len(again) > 0
}

// serve does for one side of a link what it is ready for.
func (l *loop) serve(e *end, now uint32) {
	e.ready = e.ready || now&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	e.last = e.last || now&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	var err error
	if now&unix.EPOLLERR != 0 {
		err = unix.ECONNRESET
	}
	if err == nil && len(e.waiting) > 0 && now&unix.EPOLLOUT != 0 {
		err = l.flush(e)
	}
	if err == nil {
		err = l.carry(e)
	}
	switch {
	case err != nil:
		resets(e.link.client.fd)
		l.end(e.link)
	case e.said && e.other.said:
		l.end(e.link)
	}
}

// carry hands on what a side has sent, while the other takes it. What that does not take waits, and nothing more is
// read meanwhile.
func (l *loop) carry(e *end) error {
	to := e.other
	for range chunks {
		if !e.ready || len(to.waiting) > 0 {
			return nil
		}
		n, err := unix.Read(e.fd, l.buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			e.ready = false
			return nil
		case err != nil:
			return err
		case n == 0:
			l.half(e)
			return nil
		}
		// It is told when there is more. Only that it sends no more may have been told already.
		e.ready = n == chunk || e.last
		sent, err := send(to.fd, l.buffer[:n])
		if err != nil {
			return err
		}
		if sent < n {
			to.held, to.waiting = l.buffer, l.buffer[sent:n]
			l.buffer = l.take()
		}
	}
	if !e.queued {
		e.queued, l.more = true, append(l.more, e)
	}
	return nil
}

// flush hands on what has waited for a side to take it, and then what more there is.
func (l *loop) flush(e *end) error {
	sent, err := send(e.fd, e.waiting)
	if err != nil {
		return err
	}
	if e.waiting = e.waiting[sent:]; len(e.waiting) > 0 {
		return nil
	}
	l.give(e)
	return l.carry(e.other)
}

// send sends as much as is taken at once. It is told when the rest may be tried.
func send(fd int, data []byte) (sent int, err error) {
	for sent < len(data) {
		n, err := unix.Write(fd, data[sent:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return sent, nil
		case err != nil:
			return sent, err
		default:
			sent += n
		}
	}
	return sent, nil
}

// take gives an empty buffer.
func (l *loop) take() *[chunk]byte {
	last := len(l.spare) - 1
	if last < 0 {
		return new([chunk]byte)
	}
	b := l.spare[last]
	l.spare = l.spare[:last]
	return b
}

// give takes back the buffer in which something waited for a side.
func (l *loop) give(e *end) {
	if e.held != nil && len(l.spare) < batch {
		l.spare = append(l.spare, e.held)
	}
	e.held, e.waiting = nil, nil
}

// half hands on that a side sends no more. What then comes the other way has its bound.
func (l *loop) half(e *end) {
	e.said, e.ready = true, false
	bound := clientHalf
	if e == &e.link.voter {
		bound = voterHalf
	}
	until := time.Now().Add(bound)
	if at, ok := l.halves[e.link]; !ok || until.Before(at) {
		l.halves[e.link] = until
	}
	_ = unix.Shutdown(e.other.fd, unix.SHUT_WR) // one that is gone is told of
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
			err = unix.EpollCtl(int(fd), unix.EPOLL_CTL_ADD, e.fd, &unix.EpollEvent{Events: told, Fd: int32(e.fd)})
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
	l.give(&k.client)
	l.give(&k.voter)
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
