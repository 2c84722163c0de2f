// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleetlock implements the server side of FleetLock. With this protocol, reboot agents such as Zincati request
// permission to reboot a machine. quorumd answers agents on its own host, so that hosts reboot one at a time under
// quorumd's rules.
//
// It promises:
//   - 200 for pre-reboot means that this host's operation is in progress, and no other host is taken down until this
//     host is back. It also means that quorumd has stopped etcd in an orderly way, unless another program manages etcd.
//     200 for steady-state means that this host is back, or that there was no request.
//   - A response of 200 is sent only when its state is reached, and the client waits for it. If the client had to poll,
//     etcd would be down until the client's next request. When the wait times out, the response is a refusal with the
//     reason. The reboot request remains, and the client retries.
//   - Any other response is a refusal with a document {"kind", "value"}. The kinds are few and do not change.
//   - Bodies, headers, connections and waiting time are limited.
//
// The protocol has no authentication: any client that can connect to the address can stop this host's etcd. Therefore
// the address must be on the loopback interface.
package fleetlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/connlimit"
	"github.com/quorumd/quorumd/agent/control"
)

// Options configure a Server.
type Options struct {
	Listen string // host and port, on the loopback interface
	Host   control.Maintainer
	Logger *slog.Logger
}

const (
	maxBody  = 4 << 10 // bytes; a request has about 100
	maxWaits = 16      // concurrent requests; each host has one reboot agent
	// maxConnections applies to all users of the host together, because they share the loopback address.
	maxConnections = 2 * maxWaits
	readLimit      = 10 * time.Second // for the header and the body
	// longestWait is how long one request may wait. Zincati times out after half an hour.
	longestWait = 10 * time.Minute
	grace       = time.Second // for responses in flight when the server stops
)

// Server answers reboot agents.
type Server struct {
	opt      Options
	wait     time.Duration
	slots    chan struct{}
	answers  *prometheus.CounterVec
	listener net.Listener
}

// New returns a server. It does not listen yet.
func New(opt Options) *Server {
	s := &Server{
		opt: opt, wait: longestWait, slots: make(chan struct{}, maxWaits),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorumd_fleetlock_responses_total",
			Help: "Requests from reboot agents, by kind of refusal; kind none means granted.",
		}, []string{"kind"}),
	}
	for _, kind := range kinds() {
		s.answers.WithLabelValues(kind)
	}
	return s
}

// Metrics returns a collector of the server's counters.
func (s *Server) Metrics() prometheus.Collector { return s.answers }

// Listen opens the listening socket. Serve closes it.
func (s *Server) Listen() error {
	l, err := connlimit.Listen(
		s.opt.Listen,
		connlimit.Limits{Total: maxConnections, PerAddress: maxConnections},
		s.opt.Logger,
	)
	if err != nil {
		return fmt.Errorf("cannot listen for reboot agents: %w; change fleetlock.listen", err)
	}
	s.listener = l
	return nil
}

// Close closes the socket if Serve was not called; after Serve, it does nothing.
func (s *Server) Close() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// Serve answers requests until the context ends, and then refuses those that still wait.
func (s *Server) Serve(ctx context.Context) error {
	times := connlimit.Times{Header: readLimit, Read: readLimit, Write: s.wait + 2*readLimit, Idle: readLimit}
	srv := connlimit.Server(s, times, s.opt.Logger)
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(s.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("cannot serve reboot agents: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if srv.Shutdown(last) != nil {
		srv.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, refused := s.answer(w, r)
	kind, status := kindNone, http.StatusOK
	var body any = struct{}{}
	if refused != nil {
		kind, status, body = refused.Kind, refused.status, refused
	}
	s.answers.WithLabelValues(kind).Inc()
	if c.ID != "" {
		s.opt.Logger.Info("answered reboot agent", "path", r.URL.Path, "client", c.ID, "group", c.Group, "refused",
			kind)
	}
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a disconnected client needs no answer
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) (client, *refusal) {
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if refused := checkRequest(r); refused != nil {
		// with an unread body, the kernel may reset the connection before the client has read the answer
		_, _ = io.Copy(io.Discard, body)
		return client{}, refused
	}
	c, refused := readClient(body)
	if refused != nil {
		return client{}, refused
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return c, refuse(http.StatusServiceUnavailable, kindBusy,
			"cannot accept the request: too many are waiting; retry later")
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.wait)
	defer cancel()
	if r.URL.Path == preRoute {
		return c, s.preReboot(ctx, c)
	}
	return c, s.steadyState(ctx, c)
}
