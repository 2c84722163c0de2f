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
	chunk = 32 << 10 // bytes copied at a time
	// turnBytes is how much one connection may copy before the others are served.
	turnBytes = 256 << 10
	batch     = 128 // connections served before the loop's lock is released
)

// watched lists the events of a connection. They are edge-triggered: each change is reported once.
const watched = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// loop copies the bytes of many links in one thread, with an epoll of its own. A goroutine per direction would cost a
// stack each, one more read per message to learn that there is no second one, and a wait in Go's poller.
type loop struct {
	poll int // the epoll's descriptor
	wake int // an eventfd in it, to end the wait

	mu       sync.Mutex
	ends     map[int32]*end
	halves   map[*link]time.Time // half-closed links, and when the other side must have closed
	buffer   *[chunk]byte        // for the copy in progress
	spare    []*[chunk]byte      // free buffers
	drained  *pipe               // a free pipe, for large transfers
	pipes    int                 // number of pipes in existence
	pipeless bool                // the kernel cannot splice between these connections
	more     []*end              // sides that used up their turn and may have more
	serial   int32
	closed   bool
}

func newLoop() (*loop, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot set up epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot set up epoll: %w", err), unix.Close(poll))
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

// run copies until close is called.
func (l *loop) run() error {
	runtime.LockOSThread() // the thread blocks in epoll_wait
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

// turn serves the sides that are ready. It reports whether some have more data, and whether the loop is closed.
func (l *loop) turn(events []unix.EpollEvent) (busy, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false, true
	}
	again := l.more
	l.more = nil
	if len(again) > batch { // the rest waits for the next turn
		again, l.more = again[:batch], slices.Clone(again[batch:])
	}
	for _, event := range events {
		// otherwise the link has ended, and another link may use the number
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

// serve handles the events of one side of a link.
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

// carry copies what a side has sent, while the other side accepts it. It keeps what was not accepted, and reads nothing
// more until then.
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
		// A new event reports more data, except for a close: its event may have come already.
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

// flush sends the data that waited for a side, and then carries on with the other side's data.
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

// send writes as much as the descriptor accepts at once. An event reports when it accepts more.
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

// take returns an empty buffer.
func (l *loop) take() *[chunk]byte {
	last := len(l.spare) - 1
	if last < 0 {
		return new([chunk]byte)
	}
	b := l.spare[last]
	l.spare = l.spare[:last]
	return b
}

// give frees the buffer or pipe that held data for a side.
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

// half passes on that a side has closed its sending side, and bounds how long the other direction may stay open.
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
	_ = unix.Shutdown(e.other.fd, unix.SHUT_WR) // fails if it is gone, which an event reports
}

// add starts to copy between both sides of a link.
func (l *loop) add(k *link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || k.over { // its voter may be gone already, and its numbers used by another link
		return os.ErrClosed
	}
	for _, e := range []*end{&k.client, &k.voter} {
		l.serial++
		e.serial = l.serial
		l.ends[int32(e.fd)] = e
		event := unix.EpollEvent{Events: watched, Fd: int32(e.fd), Pad: e.serial}
		if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, e.fd, &event); err != nil {
			return err
		}
	}
	return nil
}

// drop closes a link, if it is still open.
func (l *loop) drop(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(k)
}

// end closes a link. Closing a descriptor removes it from the epoll.
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
	_, _ = unix.Close(k.client.fd), unix.Close(k.voter.fd) // ending a failed connection needs nothing else
	k.ended()
}

// overdue closes the half-closed links whose time is over.
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

// close closes all links and ends run.
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
	_, _ = unix.Write(l.wake, one[:]) // an eventfd takes eight bytes; the byte order does not matter
}
