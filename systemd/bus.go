// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"log/slog"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
)

// busTimeout bounds one call, including a connection attempt if needed.
const busTimeout = 3 * time.Second

// DialFunc connects to systemd. The returned connection must close when ctx ends, because that is how a hanging call is
// interrupted. sddbus.NewSystemConnectionContext returns such a connection.
type DialFunc func(ctx context.Context) (*sddbus.Conn, error)

// bus is a connection to systemd that each call restores if it is lost. A call that is not answered in time closes the
// connection, because nothing else interrupts a write to the full socket of a hanging bus.
type bus struct {
	dial DialFunc
	log  *slog.Logger

	turn   chan struct{} // contains one token; the goroutine that has taken it may use the fields below
	conn   *sddbus.Conn
	end    context.CancelFunc // closes conn
	dialed int                // number of connections made so far
	closed bool
}

func newBus(dial DialFunc, log *slog.Logger) *bus {
	b := &bus{dial: dial, log: log, turn: make(chan struct{}, 1)}
	b.turn <- struct{}{}
	return b
}

// call runs f with a live connection, exclusively, within busTimeout. If again is true and the connection was lost,
// call runs f a second time on a new connection. f must tolerate that.
func (b *bus) call(ctx context.Context, again bool, f func(context.Context, *sddbus.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	select {
	case <-b.turn:
		defer func() { b.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := b.once(ctx, f)
	if err != nil && again && ctx.Err() == nil && b.conn != nil && !b.conn.Connected() {
		err = b.once(ctx, f)
	}
	return err
}

func (b *bus) once(ctx context.Context, f func(context.Context, *sddbus.Conn) error) error {
	if err := b.connect(ctx); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, b.end)
	defer stop()
	return preferContext(ctx, f(ctx, b.conn))
}

// connect ensures a connection that appears to be alive.
func (b *bus) connect(ctx context.Context) error {
	if b.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.conn != nil && b.conn.Connected() {
		return nil
	}
	b.drop()
	// The connection outlives this call, so it gets its own context. The end of ctx cancels that context only while
	// dialling.
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	conn, err := b.dial(life)
	inTime := stop()
	if err == nil && !inTime {
		conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		end()
		return preferContext(ctx, err)
	}
	b.conn, b.end = conn, end
	if b.dialed++; b.dialed > 1 {
		b.log.Info("reconnected to systemd")
	}
	return nil
}

// drop ends the connection, if there is one.
func (b *bus) drop() {
	if b.conn == nil {
		return
	}
	b.conn.Close()
	b.end()
	b.conn = nil
}

// close ends the connection permanently. It waits for a call in progress, which is bounded.
func (b *bus) close() {
	<-b.turn
	b.drop()
	b.closed = true
	b.turn <- struct{}{}
}

// preferContext returns the context's error if err is not nil and the context has ended. The error of an interrupted
// connection only states that the connection is closed.
func preferContext(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
