// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"os"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

const (
	// usualDelay is logind's default InhibitDelayMaxSec.
	usualDelay = 5 * time.Second
	// beforeLimit is how long before logind's limit the preparation's context ends, so that there is still time to
	// report the result.
	beforeLimit = 500 * time.Millisecond
	// maxRetry is the longest time between two attempts to take the lock.
	maxRetry = time.Minute
)

// errBusLost means that the connection ended for an unknown reason.
var errBusLost = errors.New("the connection to the bus is lost")

// errGoingDown means that the bus stopped because the machine is shutting down.
var errGoingDown = errors.New("the machine is shutting down")

// Shutdown is the work to do before the machine goes down.
type Shutdown interface {
	// Prepare is called when a shutdown begins. The shutdown waits until Prepare returns, or until logind stops
	// waiting. The context ends when the shutdown
	// is cancelled, when the lock is lost, when the context of Inhibit ends, or half a second before logind stops
	// waiting, so that there is time to report the result.
	Prepare(ctx context.Context)
	// Cancelled is called after a shutdown was cancelled and Prepare has returned.
	Cancelled(ctx context.Context)
}

// Inhibit holds a delay lock of logind until ctx ends, so that a shutdown, a reboot or the power button waits for s. It
// can delay a shutdown, but not prevent it: logind waits for at most InhibitDelayMaxSec (logind.conf(5), 5 s by
// default).
//
// Calls of s never overlap.
//
// Without logind, Inhibit only logs a line and retries periodically. After a restart of logind or the bus, Inhibit
// takes the lock again.
func (l *Logind) Inhibit(ctx context.Context, s Shutdown) {
	var logged string
	wait := l.retry
	for ctx.Err() == nil {
		err := l.inhibit(ctx, s, func() { logged, wait = "", l.retry })
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != logged && !errors.Is(err, errGoingDown) {
			l.log.Warn("cannot acquire the shutdown delay lock; a reboot does not wait for quorumd", "error", err)
			logged = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

// inhibit does the work of Inhibit over one connection to the bus. It calls taken when it holds the lock. It returns
// when the connection or ctx ends, and the error is never nil.
func (l *Logind) inhibit(ctx context.Context, s Shutdown, taken func()) error {
	// The connection outlives dial, so its context has no deadline. Its context does not end with ctx either; see take.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	dialed, asked := time.AfterFunc(busTimeout, end), context.AfterFunc(ctx, end)
	conn, err := l.dial(alive)
	if late, ended := !dialed.Stop(), !asked(); err == nil && (late || ended) {
		_ = conn.Close()
		err = preferContext(ctx, context.DeadlineExceeded)
	}
	if err != nil {
		return explainLogind("take an inhibitor lock", mayDelay, err)
	}
	defer func() { _ = conn.Close() }()
	signals := make(chan *godbus.Signal, 16)
	conn.Signal(signals)
	i := &inhibitor{logind: l, conn: conn, shutdown: s, prepared: make(chan struct{}, 1)}
	defer i.finish()
	if err := i.subscribe(ctx); err != nil {
		return explainLogind("listen to logind", mayDelay, err)
	}
	if err := i.take(ctx); err != nil {
		return explainLogind("take an inhibitor lock", mayDelay, err)
	}
	taken()
	l.log.Info("acquired the shutdown delay lock", "max_delay", i.limit.String())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Context().Done():
			return i.lost()
		case <-i.prepared:
			i.release()
		case signal, open := <-signals:
			if !open {
				return i.lost()
			}
			if err := i.handle(ctx, signal); err != nil {
				return explainLogind("take an inhibitor lock again", mayDelay, err)
			}
		}
	}
}

// inhibitor holds one of logind's locks over one connection. Except for the preparation, only the goroutine of inhibit
// uses it.
type inhibitor struct {
	logind   *Logind
	conn     *godbus.Conn
	shutdown Shutdown
	limit    time.Duration
	lock     *os.File           // while the lock is open, logind waits
	cancel   context.CancelFunc // ends a preparation in progress; nil if there is none
	prepared chan struct{}      // receives a value when a preparation has returned
}

func (i *inhibitor) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	return errors.Join(
		i.conn.AddMatchSignalContext(ctx, godbus.WithMatchSender(logindName), godbus.WithMatchObjectPath(logindPath),
			godbus.WithMatchInterface(logindInterface), godbus.WithMatchMember("PrepareForShutdown")),
		i.conn.AddMatchSignalContext(ctx, godbus.WithMatchSender("org.freedesktop.DBus"),
			godbus.WithMatchInterface("org.freedesktop.DBus"), godbus.WithMatchMember("NameOwnerChanged"),
			godbus.WithMatchArg(0, logindName)),
	)
}

// take acquires a lock, then releases the previous one, if any, and reads for how long logind waits. It waits for the
// answer even if ctx ends: the answer contains the lock, and a lock that was not received could not be released.
func (i *inhibitor) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), busTimeout)
	defer cancel()
	object := i.conn.Object(logindName, logindPath)
	var fd godbus.UnixFD
	err := object.CallWithContext(ctx, logindInterface+".Inhibit", 0,
		"shutdown", "quorumd", "transfers etcd's leadership and stops etcd cleanly", "delay").Store(&fd)
	if err != nil {
		return preferContext(ctx, err)
	}
	i.release()
	i.lock = os.NewFile(uintptr(fd), "inhibitor lock")
	var limit godbus.Variant
	i.limit = usualDelay
	if err := object.CallWithContext(ctx, propertyGet, 0, logindInterface,
		"InhibitDelayMaxUSec").Store(&limit); err == nil {
		if microseconds, ok := limit.Value().(uint64); ok && microseconds < uint64(time.Hour/time.Microsecond) {
			i.limit = time.Duration(microseconds) * time.Microsecond
		}
	}
	return nil
}

// release lets the shutdown continue.
func (i *inhibitor) release() {
	if i.lock != nil {
		_ = i.lock.Close()
		i.lock = nil
	}
}

func (i *inhibitor) handle(ctx context.Context, signal *godbus.Signal) error {
	if len(signal.Body) == 0 {
		return nil
	}
	switch signal.Name {
	case logindInterface + ".PrepareForShutdown":
		if begins, _ := signal.Body[0].(bool); begins {
			i.begin(ctx)
			return nil
		}
		i.logind.log.Info("shutdown cancelled")
		i.finish()
		i.shutdown.Cancelled(ctx)
		return i.take(ctx)
	case "org.freedesktop.DBus.NameOwnerChanged":
		if owner, _ := signal.Body[len(signal.Body)-1].(string); owner == "" || i.cancel != nil {
			return nil // keep the old lock: without logind and during a preparation, it may still be valid
		}
		return i.take(ctx)
	}
	return nil
}

// lost returns the error of inhibit when the connection has ended.
func (i *inhibitor) lost() error {
	if i.cancel != nil && i.lock == nil {
		return errGoingDown
	}
	return explainLogind("keep an inhibitor lock", mayDelay, errBusLost)
}

// begin starts the preparation.
func (i *inhibitor) begin(ctx context.Context) {
	if i.cancel != nil || i.lock == nil {
		return
	}
	i.logind.log.Info("machine is shutting down", "max_delay", i.limit.String())
	ctx, i.cancel = context.WithTimeout(ctx, max(i.limit-beforeLimit, 0))
	go func() {
		i.shutdown.Prepare(ctx)
		i.prepared <- struct{}{}
	}()
}

// finish ends a preparation in progress, waits for it, and releases the lock.
func (i *inhibitor) finish() {
	if i.cancel != nil {
		i.cancel()
		if i.lock != nil { // the lock was not released, so the end of the preparation has not been received yet
			<-i.prepared
		}
		i.cancel = nil
	}
	i.release()
}
