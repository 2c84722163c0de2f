// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fleetlock

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host simulates the agent.
type host struct {
	safeAfter, backAfter time.Duration // 0: never
	refuse               error
	rounds               uint64

	mu    sync.Mutex
	m     *control.Maintenance
	ended int
}

func (h *host) RequestMaintenance(_ context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return control.Maintenance{}, h.refuse
	}
	if h.m == nil {
		h.m = &control.Maintenance{
			Work: req.Work, Reason: req.Reason, By: by, External: req.External,
			State: policy.RequestWaiting,
		}
		h.after(h.safeAfter, policy.RequestSafe)
	}
	return *h.m, nil
}

func (h *host) after(d time.Duration, state policy.RequestState) {
	if d > 0 {
		time.AfterFunc(d, func() { h.become(state) })
	}
}

func (h *host) become(state policy.RequestState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if state == "" {
		h.m = nil
		return
	}
	m := *h.m
	m.State = state
	h.m = &m
}

func (h *host) EndMaintenance(context.Context, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
	if h.m.State == policy.RequestWaiting {
		h.m = nil
		return nil
	}
	h.m = &control.Maintenance{Work: h.m.Work, By: h.m.By, External: true, State: policy.RequestReturning}
	h.after(h.backAfter, "")
	return nil
}

func (h *host) Status() control.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return control.Status{
		Maintenance: h.m, Loop: control.Loop{Rounds: h.rounds},
		Reasons: []control.Reason{{Code: "CYCLE_QUEUED", Text: "n2 is down for a reboot"}},
	}
}

func server(h control.Maintainer) *Server {
	return New(Options{Listen: "127.0.0.1:0", Host: h, Logger: slog.New(slog.DiscardHandler)})
}

const body = `{"client_params":{"id":"c3f1","group":"default"}}`

func request(path, text string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9380"+path, strings.NewReader(text))
	r.Header.Set("Fleet-Lock-Protocol", "true")
	return r
}

// ask sends a request, and returns the status, kind and value of the response. Every refusal must be a valid document.
func ask(t *testing.T, s *Server, r *http.Request) (int, string, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var refused refusal
	if err := json.Unmarshal(w.Body.Bytes(), &refused); err != nil {
		t.Fatalf("the answer is %q: %v", w.Body, err)
	}
	if (w.Code == http.StatusOK) != (refused.Kind == "") || !slices.Contains(append(kinds(), ""), refused.Kind) {
		t.Errorf("status %d with kind %q", w.Code, refused.Kind)
	}
	return w.Code, refused.Kind, refused.Value
}

func scrape(t *testing.T, s *Server) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(s.Metrics()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Body.String()
}

func TestRebootIsGrantedOnceTheMachineIsSafeToReboot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{safeAfter: time.Minute, rounds: 1}
		s := server(h)
		began := time.Now()
		if status, kind, value := ask(t, s, request(preRoute, body)); status != http.StatusOK {
			t.Fatalf("%d %s: %s", status, kind, value)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+2*pollInterval {
			t.Errorf("granted after %s", took)
		}
		if h.m.By != "fleetlock: c3f1" || h.m.Work != policy.WorkReboot || !h.m.External {
			t.Errorf("requested %+v", h.m)
		}
		if status, _, _ := ask(t, s, request(preRoute, body)); status != http.StatusOK {
			t.Errorf("a repeated request is refused: %d", status)
		}
		if text := scrape(t, s); !strings.Contains(text, `quorumd_fleetlock_responses_total{kind="none"} 2`) {
			t.Errorf("two grants are not in:\n%s", text)
		}
	})
}

func TestTimedOutClientGetsTheReasonAndItsRequestRemains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{rounds: 1}
		began := time.Now()
		status, kind, value := ask(t, server(h), request(preRoute, body))
		if status != http.StatusConflict || kind != kindWaiting ||
			!strings.Contains(value, "CYCLE_QUEUED: n2 is down") {
			t.Errorf("%d %s: %s", status, kind, value)
		}
		if took := time.Since(began); took != longestWait || h.m == nil {
			t.Errorf("after %s the request is %+v", took, h.m)
		}
	})
}

func TestRequestOfADisconnectedClientEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		ask(t, server(&host{rounds: 1}), request(preRoute, body).WithContext(ctx))
		if took := time.Since(began); took != time.Second {
			t.Errorf("the request ended after %s, want 1s", took)
		}
	})
}

func TestSecondClientOfAHostIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(&host{safeAfter: time.Second, rounds: 1})
		ask(t, s, request(preRoute, body))
		other := strings.Replace(body, "c3f1", "beef", 1)
		for _, path := range []string{preRoute, endRoute} {
			if status, kind, value := ask(t, s, request(path, other)); status != http.StatusConflict ||
				kind != kindOtherClient {
				t.Errorf("%s: %d %s: %s", path, status, kind, value)
			}
		}
	})
}

func TestRebootIsRefusedDuringAnOperatorsMaintenance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{rounds: 1, refuse: &control.Error{
			Code:    control.CodeConflict,
			Message: "cannot ask: another maintenance, by root: new disk",
		}}
		if status, kind, value := ask(t, server(h), request(preRoute, body)); status != http.StatusConflict ||
			kind != kindOther || !strings.Contains(value, "new disk") {
			t.Errorf("%d %s: %s", status, kind, value)
		}
		h = &host{rounds: 1, m: &control.Maintenance{
			Work: policy.WorkReboot, By: "root", Reason: "new kernel",
			State: policy.RequestSafe,
		}}
		if status, kind, _ := ask(t, server(h), request(preRoute, body)); status != http.StatusConflict ||
			kind != kindOther {
			t.Errorf("during a reboot by quorumd itself: %d %s", status, kind)
		}
		h = &host{rounds: 1, refuse: &control.Error{Code: control.CodeInternal, Message: "cannot write"}}
		if status, kind, _ := ask(t, server(h), request(preRoute, body)); status != http.StatusServiceUnavailable ||
			kind != kindUnable {
			t.Errorf("internal error: %d %s", status, kind)
		}
	})
}

func TestCancelledRequestIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{rounds: 1}
		time.AfterFunc(time.Minute, func() { h.become("") })
		if status, kind, _ := ask(t, server(h), request(preRoute, body)); status != http.StatusConflict ||
			kind != kindWithdrawn {
			t.Errorf("%d %s", status, kind)
		}
	})
}

func TestSteadyStateIsReachedWhenTheHostIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{safeAfter: time.Second, backAfter: 20 * time.Second, rounds: 1}
		s := server(h)
		ask(t, s, request(preRoute, body))
		began := time.Now()
		if status, kind, value := ask(t, s, request(endRoute, body)); status != http.StatusOK || h.ended != 1 {
			t.Errorf("%d %s: %s; ended %d times", status, kind, value, h.ended)
		}
		if took := time.Since(began); took < 20*time.Second {
			t.Errorf("granted after %s, before the host was back", took)
		}
		if status, _, _ := ask(t, s, request(endRoute, body)); status != http.StatusOK || h.ended != 1 {
			t.Errorf("repeated request: %d; ended %d times", status, h.ended)
		}
	})
}

func TestSteadyStateOfAHostThatDoesNotComeBackIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{rounds: 1, m: &control.Maintenance{By: "fleetlock: c3f1", State: policy.RequestReturning}}
		if status, kind, _ := ask(t, server(h), request(endRoute, body)); status != http.StatusConflict ||
			kind != kindReturning || h.ended != 0 {
			t.Errorf("%d %s; ended %d times", status, kind, h.ended)
		}
	})
}

func TestSteadyStateIsNotGrantedBeforeTheFirstRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if status, kind, _ := ask(t, server(&host{}), request(endRoute, body)); status != http.StatusConflict ||
			kind != kindReturning {
			t.Errorf("%d %s", status, kind)
		}
	})
}

func TestSteadyStateDoesNotEndAnOperatorsMaintenance(t *testing.T) {
	t.Parallel()
	h := &host{rounds: 1, m: &control.Maintenance{By: "root", State: policy.RequestSafe}}
	if status, _, _ := ask(t, server(h), request(endRoute, body)); status != http.StatusOK || h.ended != 0 {
		t.Errorf("%d; ended %d times", status, h.ended)
	}
}

func TestInvalidRequestIsRefusedByKind(t *testing.T) {
	t.Parallel()
	change := func(f func(*http.Request)) *http.Request {
		r := request(preRoute, body)
		f(r)
		return r
	}
	for what, c := range map[string]struct {
		request *http.Request
		status  int
		kind    string
	}{
		"no header": {change(func(r *http.Request) {
			r.Header.Del("Fleet-Lock-Protocol")
		}), 400, kindBadRequest},
		"another header": {change(func(r *http.Request) {
			r.Header.Set("Fleet-Lock-Protocol", "false")
		}), 400, kindBadRequest},
		"two headers": {change(func(r *http.Request) {
			r.Header.Add("Fleet-Lock-Protocol", "true")
		}), 400, kindBadRequest},
		"a web page": {change(func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:9380")
		}), 400, kindBadRequest},
		"DNS rebinding":      {change(func(r *http.Request) { r.Host = "evil.example:9380" }), 400, kindBadRequest},
		"GET":                {change(func(r *http.Request) { r.Method = http.MethodGet }), 405, kindNotPost},
		"another path":       {request("/v1/pre-reboot/", body), 404, kindNotFound},
		"another version":    {request("/v2/pre-reboot", body), 404, kindNotFound},
		"no body":            {request(preRoute, ""), 400, kindBadRequest},
		"garbage":            {request(preRoute, "\x00\xff{"), 400, kindBadRequest},
		"two documents":      {request(preRoute, body+body), 400, kindBadRequest},
		"no client":          {request(preRoute, `{}`), 400, kindBadRequest},
		"no group":           {request(preRoute, `{"client_params":{"id":"a"}}`), 400, kindBadRequest},
		"an empty ID":        {request(preRoute, `{"client_params":{"id":"","group":"a"}}`), 400, kindBadRequest},
		"an ID of two lines": {request(preRoute, `{"client_params":{"id":"a\nb","group":"a"}}`), 400, kindBadRequest},
		"a number for an ID": {request(preRoute, `{"client_params":{"id":1,"group":"a"}}`), 400, kindBadRequest},
		"a long ID": {
			request(preRoute, `{"client_params":{"id":"`+strings.Repeat("a", 129)+`","group":"a"}}`),
			400, kindBadRequest,
		},
		"a large body": {request(preRoute, body+strings.Repeat(" ", maxBody)), 413, kindTooLarge},
	} {
		h := &host{rounds: 1}
		if status, kind, _ := ask(t, server(h), c.request); status != c.status || kind != c.kind {
			t.Errorf("%s: %d %s, want %d %s", what, status, kind, c.status, c.kind)
		}
		if h.m != nil {
			t.Errorf("%s: a reboot was requested: %+v", what, h.m)
		}
	}
}

func TestBodyOfARefusedRequestIsRead(t *testing.T) {
	t.Parallel()
	r := request(preRoute, body)
	r.Header.Del("Fleet-Lock-Protocol")
	if status, _, _ := ask(t, server(&host{rounds: 1}), r); status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
	if left, err := io.ReadAll(r.Body); err != nil || len(left) > 0 {
		t.Errorf("%d bytes are unread: %v", len(left), err)
	}
}

func TestTooManyWaitingRequestsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := server(&host{rounds: 1})
		var waiting sync.WaitGroup
		for range maxWaits {
			waiting.Go(func() { ask(t, s, request(preRoute, body)) })
		}
		synctest.Wait()
		if status, kind, _ := ask(t, s, request(preRoute, body)); status != http.StatusServiceUnavailable ||
			kind != kindBusy {
			t.Errorf("%d %s", status, kind)
		}
		waiting.Wait()
	})
}

func TestServerAnswersOverARealConnectionUntilItsEnd(t *testing.T) {
	t.Parallel()
	h := &host{safeAfter: 10 * time.Millisecond, rounds: 1}
	s := server(h)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	url := "http://" + s.listener.Addr().String()
	post := func(path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("fleet-lock-protocol", "true")
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if status, text := post(preRoute); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	// When quorumd stops, a client that still waits gets a refusal, and must retry.
	waiting := make(chan string, 1)
	go func() {
		_, text := post(endRoute)
		waiting <- text
	}()
	for {
		h.mu.Lock()
		begun := h.ended > 0
		h.mu.Unlock()
		if begun {
			break
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	if text := <-waiting; !strings.Contains(text, kindReturning) {
		t.Errorf("a client that waits at the end gets %q", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		c.Close()
		t.Error("the server still listens")
	}
}

func FuzzServeHTTP(f *testing.F) {
	f.Add(preRoute, "true", []byte(body))
	f.Add(endRoute, "true", []byte(`{"client_params":{"id":"`))
	f.Add("/", "", []byte("\x00"))
	f.Fuzz(func(t *testing.T, path, protocol string, text []byte) {
		r, err := http.NewRequest(http.MethodPost, "http://localhost/", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path = path
		r.Header["Fleet-Lock-Protocol"] = []string{protocol}
		h := &host{rounds: 1, m: &control.Maintenance{
			Work: policy.WorkReboot, External: true, By: "root",
			State: policy.RequestSafe,
		}}
		status, _, _ := ask(t, server(h), r)
		var document struct {
			Params client `json:"client_params"`
		}
		if status == http.StatusOK && (json.Unmarshal(text, &document) != nil ||
			!idText.MatchString(document.Params.ID) || protocol != "true") {
			t.Errorf("granted: %q %q %q", path, protocol, text)
		}
	})
}

func TestConnectionsOverTheLimitAreClosedUnread(t *testing.T) {
	t.Parallel()
	s := New(Options{Listen: "127.0.0.1:0", Host: &host{}, Logger: slog.New(slog.DiscardHandler)})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	address := s.listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var closed int
	for i := range maxConnections + 8 {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if i < maxConnections {
			continue
		}
		if err := c.SetReadDeadline(time.Now().Add(readLimit / 2)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) {
			closed++
		}
	}
	if closed != 8 {
		t.Errorf("%d of 8 connections over the limit were closed", closed)
	}
}
