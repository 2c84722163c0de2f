// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/internal/errtext"
)

// answer checks a request and runs its handler.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (answer response) {
	defer func() {
		if fault := recover(); fault != nil {
			s.opt.Logger.Error("request handler panicked", "path", r.URL.Path, "panic", fault, "stack",
				string(debug.Stack()))
			answer = refusal(fmt.Errorf("cannot serve the request: internal error: %v", fault))
		}
	}()
	if err := checkSource(r); err != nil {
		return refusal(err)
	}
	rt, methods, found := s.find(r)
	if !found {
		return notFound(w, r, methods)
	}
	p, known := peerFrom(r.Context())
	if err := s.rules.check(rt.access, p, known); err != nil {
		s.opt.Logger.Debug("request not permitted", "path", rt.path, "uid", p.uid, "pid", p.pid)
		return refusal(err)
	}
	if err := checkQuery(r, rt.params); err != nil {
		return refusal(err)
	}
	if rt.slots != nil && rt.access == accessRead && known && s.rules.mayChange(p) {
		rt.slots = s.reserved
	}
	return s.run(w, r, rt, s.rules.name(p))
}

// run calls the handler of a route with a deadline, if one of the route's slots is free.
func (s *Server) run(w http.ResponseWriter, r *http.Request, rt route, by string) response {
	if rt.slots != nil {
		select {
		case rt.slots <- struct{}{}:
			defer func() { <-rt.slots }()
		default:
			return refusal(errBusy())
		}
	}
	if r.Header.Get("Expect") != "" {
		w.WriteHeader(http.StatusContinue) // this shows the client that the daemon does not hang
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.backend)
	defer cancel()
	most := s.limits.body
	if rt.method == http.MethodPut && rt.path == "/v1/recovery" {
		most = s.limits.plan
	}
	body := http.MaxBytesReader(w, r.Body, most)
	if rt.access == accessChange {
		defer s.status.drop() // even after an error, because part of the change may have been made
	}
	answer, err := rt.handle(request{ctx: ctx, query: r.URL.Query(), body: body, by: by})
	if err != nil {
		s.logChange(rt, "operator request refused", "by", by, "error", err)
		return refusal(err)
	}
	s.logChange(rt, "operator request accepted", "by", by)
	if rt.access == accessChange {
		s.settle(ctx, rt)
	}
	return answer
}

// settle waits until the status shows a change, so that the caller's next read shows it, too. The wait is short,
// because the change has already been made.
func (s *Server) settle(ctx context.Context, rt route) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.settle)
	defer cancel()
	if err := s.opt.Backend.ProbeNow(ctx); err != nil {
		s.opt.Logger.Debug("change not yet visible in the status", "path", rt.path, "error", err)
	}
}

// logChange logs a request to a route that changes something. It does not log reads, because any user can send many.
func (s *Server) logChange(rt route, message string, args ...any) {
	if rt.access == accessChange {
		s.opt.Logger.Info(message, append([]any{"method", rt.method, "path", rt.path}, args...)...)
	}
}

func refusal(err error) response {
	e := toError(err)
	return response{e.Status, control.ErrorDocument{Error: e}}
}

// checkSource refuses requests that a web page could make a browser on this host send.
func checkSource(r *http.Request) error {
	if r.Header.Get("Origin") != "" || r.Header.Get("Referer") != "" {
		return &control.Error{
			Status: http.StatusForbidden, Code: control.CodeNotPermitted,
			Message: "cannot serve a web page: the request has an Origin or Referer",
			Hint:    "use quorumctl, or curl without these headers",
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host != "quorumd" && host != "localhost" {
		return badRequest("use http://quorumd/v1/…", "cannot serve the host %q", errtext.Shorten(r.Host))
	}
	return nil
}

// find returns the route of a request. If there is none, it returns the methods that the path supports.
func (s *Server) find(r *http.Request) (rt route, methods []string, found bool) {
	for _, rt := range s.table {
		if rt.path != r.URL.Path {
			continue
		}
		if rt.method == r.Method {
			return rt, nil, true
		}
		methods = append(methods, rt.method)
	}
	return route{}, methods, false
}

// notFound answers a request without a route.
func notFound(w http.ResponseWriter, r *http.Request, methods []string) response {
	if len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return refusal(&control.Error{
			Status: http.StatusMethodNotAllowed, Code: control.CodeNotFound,
			Message: fmt.Sprintf("cannot %s %s", errtext.Shorten(r.Method), r.URL.Path),
			Hint:    "allowed methods: " + strings.Join(methods, " and "),
		})
	}
	return refusal(&control.Error{
		Status: http.StatusNotFound, Code: control.CodeNotFound,
		Message: fmt.Sprintf("cannot find %q", errtext.Shorten(r.URL.Path)),
		Hint:    "this is quorumd's API " + control.APIVersion + "; start with GET /v1/status",
	})
}

// checkQuery refuses parameters that the route does not use.
func checkQuery(r *http.Request, params []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("write it as ?name=value", "cannot read the query: %s", errtext.Shorten(err.Error()))
	}
	for name := range values {
		if !slices.Contains(params, name) {
			return badRequest("leave it out", "cannot serve the request: unknown parameter %q", errtext.Shorten(name))
		}
	}
	return nil
}
