// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package proxy carries the TCP connections of local clients to etcd's voters, on hosts that hold none. It runs in a
// process of its own (quorumd proxy) and looks at no byte: TLS goes from the client to etcd and back.
//
// It promises:
//   - Only to voters that are wanted. The agent decides which (policy.Forwards) and writes them into a file; of them
//     the one with the fewest connections from here is tried first, and one that lately took none is tried last.
//   - Without the agent, too. A list that is not written anew stays in force, until it is read again; what it says
//     against voters is then a preference and no refusal. Before there was a list, cluster.endpoints serve.
//   - Connections stay where they are, until their voter is not wanted any more: then each is closed at a moment of its
//     own within Spread, and stays after all when the voter is wanted again by then. A client connects anew.
//   - An end at once. When no voter takes a connection within the bound, the client's is reset: the port stays this
//     process's, nobody else can take it, and the client sees an error now instead of a silence.
//   - Bounded. Connections, the list, each attempt and each half that is left of a connection. One on which nothing
//     moves has neither a buffer nor a goroutine.
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
	attemptBound = 2 * time.Second // of one voter to take a connection
	searchBound  = 5 * time.Second // of all of them
	avoidFor     = 5 * time.Second // a voter that took none is tried last
	// agedAfter is when a list that the agent does not write anew counts as old. It writes each half a minute.
	agedAfter  = 5 * time.Minute
	followEach = time.Second
	mostLoops  = 4
	moveEach   = 250 * time.Millisecond
	// moveAfter is how long a voter must be unwanted before the first connection to it is closed: one lost answer moves
	// nobody.
	moveAfter = 2 * time.Second
)

// Options are what a forwarder is made of.
type Options struct {
	Listen  string   // host and port
	Static  []string // host and port of each of cluster.endpoints: used until there is a list
	List    string   // path of the list that the agent writes
	Kept    string   // path where the last list is kept for the next boot; empty: nowhere
	Most    int      // connections at a time
	Spread  time.Duration
	Loops   int                  // threads that carry; at least one
	Elapsed func() time.Duration // a clock that does not jump
	Logger  *slog.Logger
	// Changed is told in a line how things are, whenever that may have changed. It must not wait; nil: nobody is.
	Changed func(status string)
}

// Proxy is a listener and what goes through it. Make it with New, then Listen, then Serve once.
type Proxy struct {
	opt      Options
	log      *slog.Logger
	table    *table
	loops    []*loop
	list     *follower
	agedTold bool // it was told that the list is old
	listener net.Listener
	links    sync.WaitGroup
	full     lately // refused because of their number
	none     lately // reset because no voter took them
}

// New makes one that sends to the static endpoints, or where the last list says that is kept.
func New(o Options) *Proxy {
	f := &Proxy{
		opt: o, log: o.Logger,
		table: newTable(o.Listen, o.Spread, o.Elapsed),
		list:  newFollower(o.List, o.Kept, o.Elapsed),
		full:  lately{elapsed: o.Elapsed}, none: lately{elapsed: o.Elapsed},
	}
	f.table.static(o.Static)
	if l, err := f.list.last(); err == nil {
		f.table.update(l)
		f.log.Info("proxy started with the saved list of voters", "voters", l.text())
	}
	f.follow()
	return f
}

// Listen takes the address.
func (f *Proxy) Listen(ctx context.Context) (err error) {
	// A local client cannot vanish without its connection: there is nothing to ask about.
	config := net.ListenConfig{KeepAlive: -1}
	if f.listener, err = config.Listen(ctx, "tcp", f.opt.Listen); err != nil {
		return fmt.Errorf("cannot listen for clients: %w; see what else listens there (ss -ltnp), or set another "+
			"proxy.listen", err)
	}
	return nil
}

// Addr is where it listens.
func (f *Proxy) Addr() net.Addr { return f.listener.Addr() }

// Serve forwards until the context ends; then all connections are closed.
func (f *Proxy) Serve(ctx context.Context) error {
	asked := ctx
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
	go f.followAll(ctx)
	for taken := 0; ; taken++ {
		conn, err := f.listener.Accept()
		switch {
		case asked.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cannot listen for clients any more: %w", err)
		case err != nil: // the machine lacks something; the client waits in the queue of the listener
			f.log.Warn("cannot accept a connection; retrying", "error", err)
			wait(ctx, 100*time.Millisecond)
			continue
		}
		client := conn.(*net.TCPConn) //nolint:forcetypeassert // the listener is one of TCP
		if !f.table.admit(f.opt.Most) {
			reset(client)
			f.full.tell(func(times int) {
				f.log.Warn("connections refused: limit reached", "limit", f.opt.Most,
					"refused", times, "remedy", "raise LimitNOFILE= of this unit: each connection needs two")
			})
			continue
		}
		l := f.loops[taken%len(f.loops)]
		f.links.Go(func() { f.forward(ctx, client, l) })
	}
}

// startLoops has as many threads carry as there are processors for them.
func (f *Proxy) startLoops(cancel context.CancelCauseFunc) error {
	for range max(1, min(f.opt.Loops, mostLoops)) {
		l, err := newLoop()
		if err != nil {
			f.closeLoops()
			return err
		}
		f.loops = append(f.loops, l)
		f.links.Go(func() {
			if err := l.run(); err != nil {
				cancel(fmt.Errorf("cannot carry any more: %w", err))
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

// forward finds a voter for a client, and has their bytes carried until one of them ends. It does not wait for that:
// what the search has needed of memory is given back.
func (f *Proxy) forward(ctx context.Context, client *net.TCPConn, loop *loop) {
	place, voter, err := f.connect(ctx)
	var l *link
	if err == nil {
		l, err = newLink(loop, client, voter, func() {
			f.table.remove(place, l)
			f.table.leave()
		})
	}
	if err != nil {
		f.table.leave()
		reset(client)
		f.table.unserved()
		f.none.tell(func(times int) {
			f.log.Warn("connections reset: no voter accepted them", "reset", times, "error", err,
				"remedy", "check quorumctl status, and whether this host reaches the voters")
		})
		return
	}
	f.table.add(place, l)
	if err := loop.add(l); err != nil {
		l.close()
	}
}

// connect asks one voter after the other to take a connection.
func (f *Proxy) connect(ctx context.Context) (*place, *net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, searchBound)
	defer cancel()
	dialer := net.Dialer{Timeout: attemptBound, KeepAliveConfig: keepAlive(), Control: boundSilence}
	failed := errors.New("there is none to ask")
	for i, p := range f.table.order() {
		conn, err := dialer.DialContext(ctx, "tcp", p.address)
		if err == nil {
			f.table.answered(p)
			return p, conn.(*net.TCPConn), nil //nolint:forcetypeassert // it was dialled as one of TCP
		}
		if !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) { // else it was not even asked
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

func (f *Proxy) followAll(ctx context.Context) {
	follows, moves := time.NewTicker(followEach), time.NewTicker(moveEach)
	defer follows.Stop()
	defer moves.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moves.C:
			f.table.move()
			for _, l := range f.loops {
				l.overdue()
			}
		case <-follows.C:
			f.follow()
			if f.opt.Changed != nil {
				f.opt.Changed(f.Status())
			}
		}
	}
}

// follow reads the list if there is a newer one. What cannot be read changes nothing, and is told once.
func (f *Proxy) follow() {
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
	f.table.age(f.list.old())
	before := f.agedTold
	if f.agedTold = f.list.age() > agedAfter; f.agedTold && !before {
		f.log.Warn("list of voters is out of date; excluded voters are used if no other accepts a "+
			"connection", "age", f.list.age().Round(time.Second), "limit", agedAfter, "remedy",
			"check why quorumd.service does not write it")
	}
}

// Status says in a line how things are.
func (f *Proxy) Status() string { return f.table.status() }

// lately holds back a line of the log that would come again and again.
type lately struct {
	elapsed func() time.Duration
	mu      sync.Mutex
	told    time.Duration
	times   int
}

// tell tells at once what is new, and then once a minute how often it was.
func (l *lately) tell(tell func(times int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times++
	if now := l.elapsed(); l.told == 0 || now-l.told >= time.Minute {
		tell(l.times)
		l.told, l.times = now, 0
	}
}

// wait waits for a while, or for the end.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
