// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
)

// Options configure a Server.
type Options struct {
	Socket  string       // path; control.DefaultSocket if empty
	Group   string       // members of this group may change things; if empty, there is no such group
	Backend Backend      // serves the routes
	Logger  *slog.Logger // nothing is logged if nil
}

// limits bound the resources of callers. They are fields so that tests need not wait.
type limits struct {
	body     int64         // maximum bytes of a request's body, and about the maximum of its header
	plan     int64         // maximum bytes of a recovery plan
	header   time.Duration // from connecting to the end of the header
	read     time.Duration // from connecting to the end of the body
	backend  time.Duration // how long the backend may take to answer
	settle   time.Duration // how long a change may take to appear in the status; part of backend
	write    time.Duration // from the end of the header to the end of the answer
	idle     time.Duration // between two requests
	shutdown time.Duration // how long requests in flight may take when the server stops
	perUser  int           // connections
	readers  int           // connections of all users together who may only read
	nonRoot  int           // connections of all users together except root
	// maximum number of waiting requests, separately for changes, for reads by users who may change things, and for
	// other reads
	waiting int
	// maximum bytes of answers in transit: to one user, and to all users together who may only read. The same limits
	// apply separately to users who may change things.
	unreadUser, unread int64
}

func defaultLimits() limits {
	return limits{
		body:     64 << 10,
		plan:     2 * recovery.MaxSize,
		header:   5 * time.Second,
		read:     10 * time.Second,
		backend:  10 * time.Second,
		settle:   5 * time.Second,
		write:    25 * time.Second,
		idle:     30 * time.Second,
		shutdown: 2 * time.Second,
		perUser:  32,
		readers:  96,
		nonRoot:  128,
		waiting:  8,

		unreadUser: 8 << 20,
		unread:     24 << 20,
	}
}

// Server serves the control socket.
type Server struct {
	opt      Options
	limits   limits
	rules    rules
	table    []route
	reserved chan struct{} // slots for reads by users who may change things; other users cannot take them
	listener *peerListener

	status          statusCache
	encoding        sync.Mutex // held while one answer is encoded
	transit         *transit
	transitReserved *transit // answers to users who may change things
}

// New returns a server. It does not touch the socket yet.
func New(opt Options) *Server { return newServer(opt, defaultLimits()) }

func newServer(opt Options, lim limits) *Server {
	if opt.Socket == "" {
		opt.Socket = control.DefaultSocket
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opt: opt, limits: lim, reserved: make(chan struct{}, lim.waiting),
		transit:         newTransit(lim.unreadUser, lim.unread),
		transitReserved: newTransit(lim.unreadUser, lim.unread),
	}
	s.table = s.routes()
	return s
}

// Listen listens on the socket, so that callers can connect and wait for Serve. It returns ErrServed if a live process
// serves the socket. Close or Serve removes the socket.
func (s *Server) Listen() error {
	r, err := readRules(s.opt.Group, "/etc/group", "/etc/passwd")
	if err != nil {
		s.opt.Logger.Warn("cannot read all of /etc/passwd and /etc/group; users may be shown by UID, and members of "+
			"the control group may be refused", "error", err)
	} else if s.opt.Group != "" && !r.known {
		s.opt.Logger.Info("control group does not exist; only root can make changes", "group", s.opt.Group)
	}
	s.rules = r
	l, err := listenUnix(s.opt.Socket)
	if err != nil {
		return err
	}
	s.listener = &peerListener{
		UnixListener: l, socket: s.opt.Socket, byUser: map[uint32]int{},
		rules: r, maxPerUser: s.limits.perUser, maxReaders: s.limits.readers, maxNonRoot: s.limits.nonRoot,
	}
	return nil
}

// Close removes the socket. After Serve it does nothing.
func (s *Server) Close() error {
	if s.listener == nil {
		return nil
	}
	l := s.listener
	s.listener = nil
	return l.Close()
}

// Serve answers until the context ends. Then it removes the socket, waits a moment for requests in flight, and
// returns nil. It listens first if Listen was not called.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	l := s.listener
	s.listener = nil // the HTTP server now owns the listener
	srv := s.httpServer(ctx)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("cannot serve %s: %w", s.opt.Socket, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.shutdown)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		srv.Close() // the remaining requests have exceeded the time for shutdown
	}
	<-ended //nolint:errcheck // Serve always returns an error after Shutdown or Close
	return nil
}

func (s *Server) httpServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		ConnContext: withPeer,
		// without cancellation: requests in flight may finish
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.read,
		WriteTimeout:      s.limits.write,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    int(s.limits.body),
		ErrorLog:          slog.NewLogLogger(s.opt.Logger.Handler(), slog.LevelDebug),
	}
}
