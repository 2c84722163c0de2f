// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	chunk = 32 << 10 // bytes that are carried at a time
	// turnBytes are carried of one connection before others have their turn, however they are carried.
	turnBytes = 256 << 10
	batch     = 128 // connections that are served before others may look at a link
)

// told is what the epoll tells of a connection: once, when it has become so.
const told = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// loop carries the bytes of many links in one thread, which waits for all of them in an epoll of its own: a goroutine
// for each way of each connection would cost a stack each, and for every message one more call to learn that there is
// no second one, and Go's poller between them a second wait.
type loop struct {
	poll int // an epoll
	wake int // a file in it, that ends the wait

	mu       sync.Mutex
	ends     map[int32]*end
	halves   map[*link]time.Time // of which one side sends no more, and when the other must have ended
	buffer   *[chunk]byte        // for what is on its way just now
	spare    []*[chunk]byte      // some that nothing waits in any more
	drained  *pipe               // for what is much
	pipes    int                 // that there are
	pipeless bool                // the kernel does not carry between these connections
	more     []*end              // of whom there may be more than they had a turn for
	serial   int32
	closed   bool
}

func newLoop() (*loop, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot wait for many connections: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot wait for many connections: %w", err), unix.Close(poll))
	}
	l := &loop{
		poll: poll, wake: wake, ends: map[int32]*end{}, halves: map[*link]time.Time{}, buffer: new([chunk]byte),
	}
	err = unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	if err != nil {
		return nil, errors.Join(err, unix.Close(poll), unix.Close(wake))
	}
	return l, nil
}

// run carries until close.
func (l *loop) run() error {
	runtime.LockOSThread() // it waits in the kernel, and is woken there
	defer runtime.UnlockOSThread()
	events := make([]unix.EpollEvent, batch)
	busy := false
	for {
		patience := -1
		if busy {
			patience = 0
		}
		n, err := unix.EpollWait(l.poll, events, patience)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		var closed bool
		if busy, closed = l.turn(events[:max(n, 0)]); closed {
			return errors.Join(unix.Close(l.poll), unix.Close(l.wake))
		}
	}
}

// turn serves those that have something now, and tells whether some have more, or whether it is over.
func (l *loop) turn(events []unix.EpollEvent) (busy, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false, true
	}
	again := l.more
	l.more = nil
	if len(again) > batch { // the rest in the next turn
		again, l.more = again[:batch], slices.Clone(again[batch:])
	}
	for _, event := range events {
		// else its link has ended, and the number may be another one's by now
		if e := l.ends[event.Fd]; e != nil && e.serial == event.Pad {
			l.serve(e, event.Events)
		}
	}
	for _, e := range again {
		e.queued = false
		if !e.link.over {
			l.serve(e, 0)
		}
	}
	return len(l.more) > 0, false
}

// serve does for one side of a link what it is ready for.
func (l *loop) serve(e *end, now uint32) {
	e.ready = e.ready || now&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	e.last = e.last || now&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	var err error
	if now&unix.EPOLLERR != 0 {
		err = unix.ECONNRESET
	}
	if err == nil && e.full() && now&unix.EPOLLOUT != 0 {
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
	for left := turnBytes; left > 0; {
		if !e.ready || to.full() {
			return nil
		}
		if e.much {
			n, more, err := l.pour(e, left)
			if !more || err != nil {
				return err
			}
			left -= n
			continue
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
		e.ready, e.much = n == chunk || e.last, n == chunk && !l.pipeless
		left -= n
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
	if p := e.piped; p != nil {
		if err := p.empty(e.fd); err != nil || p.left > 0 {
			return err
		}
	}
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

// give takes back the buffer or the pipe in which something waited for a side.
func (l *loop) give(e *end) {
	if e.held != nil && len(l.spare) < batch {
		l.spare = append(l.spare, e.held)
	}
	e.held, e.waiting = nil, nil
	if e.piped != nil {
		l.keep(e.piped)
		e.piped = nil
	}
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
	if l.closed || k.over { // its voter may have gone meanwhile, and its numbers be another link's
		return os.ErrClosed
	}
	for _, e := range []*end{&k.client, &k.voter} {
		l.serial++
		e.serial = l.serial
		l.ends[int32(e.fd)] = e
		event := unix.EpollEvent{Events: told, Fd: int32(e.fd), Pad: e.serial}
		if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, e.fd, &event); err != nil {
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
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for _, e := range l.ends {
		l.end(e.link)
	}
	if l.drained != nil {
		l.drained.close()
	}
	l.closed = true
	var one [8]byte
	one[0] = 1
	_, _ = unix.Write(l.wake, one[:]) // it takes eight bytes, in whatever order
}
