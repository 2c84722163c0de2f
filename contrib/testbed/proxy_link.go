// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection through a proxy.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	ctx            context.Context
	cancel         context.CancelFunc
}

func (l *link) abort() {
	l.cancel()
	reset(l.client)
	reset(l.server)
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only on a closed connection
	conn.Close()
}

// chunk is a piece of data in flight, or the error that ends its direction.
type chunk struct {
	data []byte
	due  time.Time
	err  error
}

// pump relays one direction until it ends. It keeps reading while bytes are delayed, so that a delay does not limit the
// rate.
func (l *link) pump(dst, src *net.TCPConn, held func(Faults) bool) {
	chunks := make(chan chunk, 64)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(src, chunks) })
	defer reader.Wait()
	for c := range chunks {
		if !l.sleepUntil(c.due) || !l.waitWhile(held) {
			return
		}
		switch {
		case errors.Is(c.err, io.EOF):
			_ = dst.CloseWrite() // if this fails, the other direction fails as well
			return
		case c.err != nil || l.write(dst, c.data, held) != nil:
			l.abort()
			return
		}
	}
}

// read sends chunks until the connection ends or fails. The last chunk is that end or error.
func (l *link) read(src *net.TCPConn, chunks chan<- chunk) {
	defer close(chunks)
	for {
		data := make([]byte, 16<<10)
		n, err := src.Read(data)
		faults, _ := l.proxy.current()
		due := time.Now().Add(faults.Delay)
		if n > 0 {
			select {
			case chunks <- chunk{data: data[:n], due: due}:
			case <-l.ctx.Done():
				return
			}
		}
		if err != nil {
			select {
			case chunks <- chunk{err: err, due: due}:
			case <-l.ctx.Done():
			}
			return
		}
	}
}

// write sends a chunk. If the rate is limited, it sends pieces worth a twentieth of a second each. Before each piece,
// it waits while the direction is held.
func (l *link) write(dst *net.TCPConn, data []byte, held func(Faults) bool) error {
	for len(data) > 0 {
		if !l.waitWhile(held) {
			return l.ctx.Err()
		}
		faults, changed := l.proxy.current()
		piece := len(data)
		if faults.Rate > 0 {
			piece = min(piece, max(1, faults.Rate/20))
		}
		if _, err := dst.Write(data[:piece]); err != nil {
			return err
		}
		data = data[piece:]
		if faults.Rate == 0 {
			continue
		}
		timer := time.NewTimer(time.Duration(piece) * time.Second / time.Duration(faults.Rate))
		select {
		case <-timer.C:
		case <-changed:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// sleepUntil waits until due. It returns false if the link was aborted first.
func (l *link) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return l.ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// waitWhile waits until the direction is no longer held. It returns false if the link was aborted first.
func (l *link) waitWhile(held func(Faults) bool) bool {
	for {
		faults, changed := l.proxy.current()
		if l.ctx.Err() != nil {
			return false
		}
		if !held(faults) {
			return true
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}
