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
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/page"
)

// served serves what is scraped until the test ends.
func served(t *testing.T, s *scrapes, log *slog.Logger) {
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

func TestAScrapeIsAnsweredBesideManyWhoAreIdleAndOnlyToThoseWhoAreAllowed(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	s, err := listenMetrics(config.Metrics{Listen: "127.0.0.1:0", Allow: []string{"127.0.0.2/32", "127.0.0.3/32"}},
		"1.2.3", http.NotFoundHandler(), log)
	if err != nil {
		t.Fatal(err)
	}
	served(t, s, log)
	address := s.listener.Addr().String()
	from := func(ip string) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: 10 * time.Second}
	}
	for range 2 * scrapesInAll {
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
	if text, err := scrape("127.0.0.4"); err == nil {
		t.Errorf("one who is not allowed got\n%s", text)
	}
}

// nobody has nothing to show.
type nobody struct{}

func (nobody) Picture() control.Status       { return control.Status{} }
func (nobody) Fsyncs() []control.FsyncMinute { return nil }

func TestWhatIsNoScrapeAndNoPageIsRefusedAndTheNextScrapeIsAnswered(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	shown, err := page.New(nobody{}, page.About{Runbooks: "# Runbooks"})
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
		_, _ = io.WriteString(conn, request+"\r\n\r\n") // it may be refused before all of it is read
		line, _ := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if got := strings.TrimSpace(strings.TrimPrefix(line, "HTTP/1.1 ")); got != want {
			t.Errorf("%.60q gets %q, not %q", request, got, want)
		}
	}
}
