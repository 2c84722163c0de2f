// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxy relays the TCP connections of local clients to etcd's voters, on hosts without a voter. It runs in a
// process of its own (quorumd proxy) and inspects no bytes: TLS runs between the client and etcd.
//
// A second proxy process, which has no list, relays connections to this host's permanent learner alone, for
// serializable reads.
//
// It promises:
//   - Selected voters only. The agent selects them (policy.ProxyTargets) and writes them to a file. The proxy first
//     tries the voter with the fewest connections from this host, and tries voters that recently refused a connection
//     last.
//   - Independence from the agent. A list that is no longer updated stays in force until the next one. While the list
//     is old, the proxy also tries the excluded voters, but last. Before the first list, the proxy uses the list saved
//     before its start or, without one, cluster.endpoints.
//   - Stable connections. A working connection is closed only if its voter is no longer selected: at a random moment
//     within Spread, and not at all if the voter is selected again by then. The client reconnects.
//   - Fast failure. If no voter accepts a connection within the time limit, the client's connection is reset, so the
//     client gets an error instead of waiting for its own timeout.
//   - Limits on connections, the list, each attempt and each half-closed connection. An idle connection uses neither a
//     buffer nor a goroutine.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	attemptBound = 2 * time.Second // timeout for one voter to accept a connection
	searchBound  = 5 * time.Second // timeout for all attempts on behalf of one client
	avoidFor     = 5 * time.Second // for how long a voter that refused a connection is tried only after the others
	// staleAfter is the age from which a list counts as old. While there is a quorum, the agent writes the list at
	// least every 30 seconds.
	staleAfter  = 5 * time.Minute
	followEvery = time.Second
	maxLoops    = 4
	moveEvery   = 250 * time.Millisecond
	// moveAfter is how long a voter must have been excluded before the first connection to it is closed, so that a
	// momentary exclusion closes none.
	moveAfter = 2 * time.Second
)

// Options configure a proxy.
type Options struct {
	Listen         string   // host and port
	Static         []string // host and port of every entry in cluster.endpoints, used until there is a list
	List           string   // path of the list that the agent writes; empty: only Static, this host's learner, is used
	Kept           string   // path of the list saved for the next boot; empty: none
	MaxConnections int      // maximum number of connections
	Spread         time.Duration
	Loops          int                  // threads that copy; limited to 1 to maxLoops
	Elapsed        func() time.Duration // a monotonic clock
	Logger         *slog.Logger
	// Changed receives the status line whenever it may have changed. It must not block; it may be nil.
	Changed func(status string)
}

// Proxy is a listener and its connections. Create it with New, then call Listen, then Serve once.
type Proxy struct {
	opt         Options
	log         *slog.Logger
	table       *table
	loops       []*loop
	list        *follower
	staleLogged bool // the warning about an old list was logged
	listener    net.Listener
	links       sync.WaitGroup
	full        logLimiter // connections refused over the limit
	none        logLimiter // connections reset because no voter, or without a list this host's learner, accepted them
}

// New returns a proxy for the voters of the agent's list. If there is none, the proxy uses the saved list or, without a
// saved one, the static endpoints.
func New(o Options) *Proxy {
	f := &Proxy{
		opt: o, log: o.Logger,
		table: newTable(o.Listen, o.Spread, o.Elapsed),
		list:  newFollower(o.List, o.Kept, o.Elapsed),
		full:  logLimiter{elapsed: o.Elapsed}, none: logLimiter{elapsed: o.Elapsed},
	}
	f.table.static(o.Static)
	if l, err := f.list.saved(); err == nil {
		f.table.update(l)
		f.log.Info("proxy started with the saved list of voters", "voters", l.text())
	}
	f.follow()
	return f
}

// Listen opens the listening socket.
func (f *Proxy) Listen(ctx context.Context) (err error) {
	// The kernel closes the connection of a local client that dies, so keepalive probes are not needed.
	config := net.ListenConfig{KeepAlive: -1}
	if f.listener, err = config.Listen(ctx, "tcp", f.opt.Listen); err != nil {
		key := "proxy.listen"
		if f.opt.List == "" {
			key = "proxy.learnerListen"
		}
		return fmt.Errorf("cannot listen for clients: %w; check what else listens there (ss -ltnp), or set another "+
			key, err)
	}
	return nil
}

// Addr returns the address of the listener.
func (f *Proxy) Addr() net.Addr { return f.listener.Addr() }

// Serve relays connections until the context ends, and then closes them all.
func (f *Proxy) Serve(ctx context.Context) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer f.links.Wait()
	defer cancel(nil)
	if err := f.startLoops(cancel); err != nil {
		return errors.Join(err, f.listener.Close())
	}
	context.AfterFunc(ctx, func() {
		_ = f.listener.Close()
		f.closeLoops()
	})
	go f.maintain(ctx)
	for accepted := 0; ; accepted++ {
		conn, err := f.listener.Accept()
		switch {
		case parent.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cannot accept clients any longer: %w", err)
		case err != nil: // this process is out of resources; the client waits in the listen queue
			f.log.Warn("cannot accept a connection; retrying", "error", err)
			wait(ctx, 100*time.Millisecond)
			continue
		}
		client := conn.(*net.TCPConn) //nolint:forcetypeassert // the listener uses TCP
		if !f.table.admit(f.opt.MaxConnections) {
			reset(client)
			f.full.log(func(count int) {
				f.log.Warn("connections refused: limit reached", "limit", f.opt.MaxConnections, "refused", count,
					"remedy", "raise LimitNOFILE= of this unit: each connection needs two descriptors")
			})
			continue
		}
		l := f.loops[accepted%len(f.loops)]
		f.links.Go(func() { f.forward(ctx, client, l) })
	}
}

// startLoops starts the copying threads.
func (f *Proxy) startLoops(cancel context.CancelCauseFunc) error {
	for range max(1, min(f.opt.Loops, maxLoops)) {
		l, err := newLoop()
		if err != nil {
			f.closeLoops()
			return err
		}
		f.loops = append(f.loops, l)
		f.links.Go(func() {
			if err := l.run(); err != nil {
				cancel(fmt.Errorf("cannot forward any longer: %w", err))
			}
		})
	}
	return nil
}

func (f *Proxy) closeLoops() {
	for _, l := range f.loops {
		l.close()
	}
}

// forward connects a client to a voter and hands both connections to a loop. It does not wait for their end, so that
// its goroutine and memory are freed.
func (f *Proxy) forward(ctx context.Context, client *net.TCPConn, loop *loop) {
	to, voter, err := f.connect(ctx)
	var l *link
	if err == nil {
		l, err = newLink(loop, client, voter, func() {
			f.table.remove(to, l)
			f.table.leave()
		})
	}
	if err != nil {
		f.table.leave()
		reset(client)
		f.table.unserved()
		f.none.log(func(count int) {
			if f.opt.List == "" {
				f.log.Warn("connections reset: this host's learner did not accept them", "reset", count, "error", err,
					"remedy", "check quorumctl status, and etcd's unit on this host")
				return
			}
			f.log.Warn("connections reset: no voter accepted them", "reset", count, "error", err,
				"remedy", "check quorumctl status, and whether this host reaches the voters")
		})
		return
	}
	f.table.add(to, l)
	if err := loop.add(l); err != nil {
		l.close()
	}
}

// connect tries the voters one after the other, and returns the first connection.
func (f *Proxy) connect(ctx context.Context) (*upstream, *net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	dialer := net.Dialer{Timeout: attemptBound, KeepAliveConfig: keepAlive(), Control: boundSilence}
	failed := errors.New("no voter is usable")
	for i, p := range f.table.order() {
		conn, err := dialer.DialContext(ctx, "tcp", p.address)
		if err == nil {
			f.table.answered(p)
			return p, conn.(*net.TCPConn), nil //nolint:forcetypeassert // dialed with TCP
		}
		// these errors occur before the voter is tried
		if !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) {
			f.table.failed(p)
		}
		err = fmt.Errorf("%s: %w", p.name, err)
		if i == 0 {
			failed = err
		} else {
			failed = errors.Join(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil, failed
}

// maintain reads new lists and closes connections that are due, until the context ends.
func (f *Proxy) maintain(ctx context.Context) {
	follows, moves := time.NewTicker(followEvery), time.NewTicker(moveEvery)
	defer follows.Stop()
	defer moves.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moves.C:
			f.table.move()
			for _, l := range f.loops {
				l.resetOverdue()
			}
		case <-follows.C:
			f.follow()
			if f.opt.Changed != nil {
				f.opt.Changed(f.Status())
			}
		}
	}
}

// follow applies the list if it has changed. An invalid list changes nothing and is logged once.
func (f *Proxy) follow() {
	if f.opt.List == "" {
		return
	}
	l, news, err := f.list.look()
	switch {
	case err != nil && news:
		f.log.Warn("cannot use the new list of voters; keeping the previous one", "error", err,
			"remedy", "restart quorumd.service, which rewrites it")
	case err == nil && news:
		if f.table.update(l) {
			f.log.Info("proxy switched to a new list of voters", "voters", l.text(), "revision", l.Revision)
		}
	}
	f.table.setStale(f.list.old())
	before := f.staleLogged
	if f.staleLogged = f.list.age() > staleAfter; f.staleLogged && !before {
		f.log.Warn("list of voters is out of date; excluded voters are used if no other accepts a "+
			"connection", "age", f.list.age().Round(time.Second), "limit", staleAfter, "remedy",
			"check why quorumd.service does not write it")
	}
}

// Status returns the status line.
func (f *Proxy) Status() string { return f.table.status() }

// logLimiter limits the rate of a repeated log line.
type logLimiter struct {
	elapsed func() time.Duration
	mu      sync.Mutex
	logged  time.Duration
	times   int
}

// log counts an occurrence. It calls write with the count since the previous call: for the first occurrence, and then
// at most once a minute.
func (l *logLimiter) log(write func(count int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times++
	if now := l.elapsed(); l.logged == 0 || now-l.logged >= time.Minute {
		write(l.times)
		l.logged, l.times = now, 0
	}
}

// wait waits for d or until the context ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
