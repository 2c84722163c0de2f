// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/config"
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
