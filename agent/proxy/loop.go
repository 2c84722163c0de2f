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
	// iterationBytes is how much one side of a link may send before the others are served.
	iterationBytes = 256 << 10
	batch          = 128 // maximum number of events, and of unfinished sides, per iteration
)

// watched is the set of epoll events for a connection. They are edge-triggered: each change is reported once.
const watched = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// loop copies the bytes of many links in one thread, with an epoll instance of its own. A goroutine per direction would
// cost a stack each, an extra read per message that returns EAGAIN, and a wakeup through Go's poller.
type loop struct {
	poll int // epoll descriptor
	wake int // eventfd that ends epoll_wait

	mu          sync.Mutex
	ends        map[int32]*end
	halfClosed  map[*link]time.Time // time limits of the half-closed links
	buffer      *[chunk]byte        // buffer for the copy in progress
	freeBuffers []*[chunk]byte      // for reuse, at most batch
	freePipe    *pipe               // a free pipe, for large transfers
	pipes       int                 // number of pipes in existence
	pipeless    bool                // the kernel cannot splice between these connections
	unfinished  []*end              // sides that reached iterationBytes and may have more
	serial      int32
	closed      bool
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
		poll: poll, wake: wake, ends: map[int32]*end{}, halfClosed: map[*link]time.Time{}, buffer: new([chunk]byte),
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
		timeout := -1
		if busy {
			timeout = 0
		}
		n, err := unix.EpollWait(l.poll, events, timeout)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		var closed bool
		if busy, closed = l.iterate(events[:max(n, 0)]); closed {
			return errors.Join(unix.Close(l.poll), unix.Close(l.wake))
		}
	}
}

// iterate serves the sides that are ready. It reports whether some may have more data, and whether the loop is closed.
func (l *loop) iterate(events []unix.EpollEvent) (busy, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false, true
	}
	again := l.unfinished
	l.unfinished = nil
	if len(again) > batch { // the rest waits for the next iteration
		again, l.unfinished = again[:batch], slices.Clone(again[batch:])
	}
	for _, event := range events {
		// Without a match, the link has ended, and a new link may use the descriptor's number.
		if e := l.ends[event.Fd]; e != nil && e.serial == event.Pad {
			l.serve(e, event.Events)
		}
	}
	for _, e := range again {
		e.queued = false
		if !e.link.closed {
			l.serve(e, 0)
		}
	}
	return len(l.unfinished) > 0, false
}

// serve handles the events of one side of a link.
func (l *loop) serve(e *end, now uint32) {
	e.ready = e.ready || now&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	e.peerClosed = e.peerClosed || now&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
	var err error
	if now&unix.EPOLLERR != 0 {
		err = unix.ECONNRESET
	}
	if err == nil && e.full() && now&unix.EPOLLOUT != 0 {
		err = l.flush(e)
	}
	if err == nil {
		err = l.copyFrom(e)
	}
	switch {
	case err != nil:
		resetOnClose(e.link.client.fd)
		l.endLink(e.link)
	case e.closeForwarded && e.other.closeForwarded:
		l.endLink(e.link)
	}
}

// copyFrom copies up to iterationBytes from a side for as long as the other side accepts the data. It keeps the data
// that was not accepted, and reads nothing more until that data is sent.
func (l *loop) copyFrom(e *end) error {
	to := e.other
	for left := iterationBytes; left > 0; {
		if !e.ready || to.full() {
			return nil
		}
		if e.bulk {
			n, more, err := l.spliceFrom(e, left)
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
			l.halfClose(e)
			return nil
		}
		// After a short read, a new event reports further data, unless the peer has closed: the event for that may have
		// been handled already, so reading continues.
		e.ready, e.bulk = n == chunk || e.peerClosed, n == chunk && !l.pipeless
		left -= n
		sent, err := send(to.fd, l.buffer[:n])
		if err != nil {
			return err
		}
		if sent < n {
			to.buffer, to.waiting = l.buffer, l.buffer[sent:n]
			l.buffer = l.takeBuffer()
		}
	}
	if !e.queued {
		e.queued, l.unfinished = true, append(l.unfinished, e)
	}
	return nil
}

// flush sends the data that waits for a side, and then continues to copy from the other side.
func (l *loop) flush(e *end) error {
	if p := e.pipe; p != nil {
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
	l.release(e)
	return l.copyFrom(e.other)
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

func (l *loop) takeBuffer() *[chunk]byte {
	last := len(l.freeBuffers) - 1
	if last < 0 {
		return new([chunk]byte)
	}
	b := l.freeBuffers[last]
	l.freeBuffers = l.freeBuffers[:last]
	return b
}

// release frees the buffer or pipe with data for a side.
func (l *loop) release(e *end) {
	if e.buffer != nil && len(l.freeBuffers) < batch {
		l.freeBuffers = append(l.freeBuffers, e.buffer)
	}
	e.buffer, e.waiting = nil, nil
	if e.pipe != nil {
		l.recycle(e.pipe)
		e.pipe = nil
	}
}

// halfClose forwards a side's end of data to the other side, and limits how long the opposite direction may stay open.
func (l *loop) halfClose(e *end) {
	e.closeForwarded, e.ready = true, false
	bound := clientHalf
	if e == &e.link.voter {
		bound = voterHalf
	}
	until := time.Now().Add(bound)
	if at, ok := l.halfClosed[e.link]; !ok || until.Before(at) {
		l.halfClosed[e.link] = until
	}
	_ = unix.Shutdown(e.other.fd, unix.SHUT_WR) // fails if the connection has broken, which an event reports
}

// add starts to copy between both sides of a link.
func (l *loop) add(k *link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || k.closed { // the link may be closed already, and its descriptor numbers reused
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

// dropLink closes a link, if it is still open.
func (l *loop) dropLink(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLink(k)
}

// endLink closes a link. Closing a descriptor removes it from the epoll set.
func (l *loop) endLink(k *link) {
	if k.closed {
		return
	}
	k.closed = true
	delete(l.ends, int32(k.client.fd))
	delete(l.ends, int32(k.voter.fd))
	delete(l.halfClosed, k)
	l.release(&k.client)
	l.release(&k.voter)
	_, _ = unix.Close(k.client.fd), unix.Close(k.voter.fd) // Linux frees the descriptor even on an error
	k.ended()
}

// resetOverdue resets the half-closed links that have reached their time limit.
func (l *loop) resetOverdue() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for k, at := range l.halfClosed {
		if now.After(at) {
			resetOnClose(k.client.fd)
			l.endLink(k)
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
		l.endLink(e.link)
	}
	if l.freePipe != nil {
		l.freePipe.close()
	}
	l.closed = true
	var one [8]byte
	one[0] = 1
	_, _ = unix.Write(l.wake, one[:]) // an eventfd takes a 64-bit number; any value but 0 wakes the loop
}
