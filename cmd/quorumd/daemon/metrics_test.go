// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/bootstrap"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/connlimit"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/page"
	"github.com/quorumd/quorumd/agent/policy"
)

// served runs an endpoint until the test ends.
func served(t *testing.T, s *endpoint, log *slog.Logger) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAScrapeIsAnsweredWhileManyIdleConnectionsAreOpen(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	s, err := listenMetrics(config.Metrics{Listen: "127.0.0.1:0"}, "1.2.3", http.NotFoundHandler(), log)
	if err != nil {
		t.Fatal(err)
	}
	served(t, s, log)
	address := s.listener.Addr().String()
	from := func(ip string) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	}
	for range 2 * scrapesTotal {
		idle, err := from("127.0.0.2").DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { idle.Close() })
	}
	scrape := func(ip string) (string, error) {
		client := http.Client{Transport: &http.Transport{DialContext: from(ip).DialContext, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	if text, err := scrape("127.0.0.3"); err != nil ||
		!strings.Contains(text, `quorumd_build_info{version="1.2.3"} 1`) {
		t.Errorf("a scrape: %v\n%s", err, text)
	}
}

func TestOtherHostsReadNothingUnlessTheirNetworkIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow        []string
		local, other bool
	}{
		{nil, true, false},
		{[]string{"192.0.2.0/24"}, true, true},
		{[]string{"198.51.100.0/24"}, true, false},
	} {
		conf := config.Metrics{Listen: "127.0.0.1:0", Allow: c.allow}
		e, err := listenMetrics(conf, "1.2.3", http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		e.listener.Close()
		for from, want := range map[string]bool{"127.0.0.1:5": c.local, "[::1]:5": c.local, "192.0.2.7:5": c.other} {
			gated, ours := e.listener.(*connlimit.Listener)
			if !ours {
				t.Fatalf("the listener is a %T", e.listener)
			}
			if got := gated.Allows(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))); got != want {
				t.Errorf("metrics.allow %v: a connection from %s is accepted: %t", c.allow, from, got)
			}
		}
	}
}

func TestListedHostsUseAListenerSeparateFromTheMetrics(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	conf := config.Config{
		Host: config.Host{Name: "n1"}, Metrics: config.Metrics{Listen: "127.0.0.1:9379"},
		Bootstrap: config.Bootstrap{Expect: 3, Hosts: []string{"n1=http://192.0.2.1:9381"}, Listen: "127.0.0.1:0"},
		Timing:    config.Timing{Interval: time.Second, CallTimeout: 10 * time.Second},
	}
	post := openBootstrap(conf, nil)
	e, err := listenBootstrap(conf, post, log)
	if err != nil {
		t.Fatal(err)
	}
	served(t, e, log)
	post.Publish(policy.BootstrapAnswer{Name: "n1", List: "L"})
	for path, want := range map[string]int{
		bootstrap.Path: http.StatusOK, "/metrics": http.StatusNotFound, "/": http.StatusNotFound,
	} {
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"http://"+e.listener.Addr().String()+path,
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// empty is a source for a status page without content.
type empty struct{}

func (empty) ClusterState() control.Status  { return control.Status{} }
func (empty) Fsyncs() []control.FsyncMinute { return nil }
func (empty) History(context.Context, int) ([]control.HistoryLine, error) {
	return nil, nil
}

func TestOtherRequestsAreRefusedAndTheNextScrapeIsAnswered(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	shown, err := page.New(empty{}, page.About{Runbooks: "# Runbooks"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := listenMetrics(config.Metrics{Listen: "127.0.0.1:0"}, "1.2.3", shown, log)
	if err != nil {
		t.Fatal(err)
	}
	served(t, s, log)
	huge := strings.Repeat("x", 64<<10)
	for request, want := range map[string]string{
		"GET /nothing HTTP/1.1\r\nHost: q":                      "404 Not Found",
		"GET /metrics/ HTTP/1.1\r\nHost: q":                     "404 Not Found",
		"GET /runbooks/../../etc/passwd HTTP/1.1\r\nHost: q":    "307 Temporary Redirect", // to /etc/passwd
		"GET /etc/passwd HTTP/1.1\r\nHost: q":                   "404 Not Found",
		"GET /debug/pprof/ HTTP/1.1\r\nHost: q":                 "404 Not Found",
		"GET /-/reload HTTP/1.1\r\nHost: q":                     "404 Not Found",
		"POST /metrics HTTP/1.1\r\nHost: q":                     "405 Method Not Allowed",
		"PUT / HTTP/1.1\r\nHost: q":                             "405 Method Not Allowed",
		"DELETE /runbooks HTTP/1.1\r\nHost: q":                  "405 Method Not Allowed",
		"GET / HTTP/1.1\r\nHost: q\r\nX: " + huge:               "431 Request Header Fields Too Large",
		"GET /" + huge + " HTTP/1.1\r\nHost: q":                 "431 Request Header Fields Too Large",
		"GET / HTTP/1.1\r\nHost: q\r\nHost: r":                  "400 Bad Request",
		"GET / HTTP/1.1\r\nno header":                           "400 Bad Request",
		"\x16\x03\x01 a client that speaks TLS":                 "400 Bad Request",
		"GET /metrics HTTP/1.1\r\nHost: q\r\nConnection: close": "200 OK",
		"GET / HTTP/1.1\r\nHost: q":                             "200 OK",
		"GET /runbooks HTTP/1.1\r\nHost: q":                     "200 OK",
	} {
		conn, err := net.Dial("tcp", s.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request+"\r\n\r\n") // the server may refuse the request before reading all of it
		line, _ := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if got := strings.TrimSpace(strings.TrimPrefix(line, "HTTP/1.1 ")); got != want {
			t.Errorf("%.60q: %q, want %q", request, got, want)
		}
	}
}
