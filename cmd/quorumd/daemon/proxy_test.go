// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// TestAProxyThatCannotStartReportsWhyAndWhetherToRetry checks the exit codes: systemd retries unless an operator must
// fix the cause.
func TestAProxyThatCannotStartReportsWhyAndWhetherToRetry(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		proxy, says string
		code        int
	}{
		{"", "proxy.learnerListen is set in ", exitConfig},
		{"host: {role: learner}\nproxy: {learnerListen: '" + taken.Addr().String() + "'}\n", "set another " +
			"proxy.learnerListen", exitUnavailable},
		{"proxy: {listen: '0.0.0.0:2379'}\n", "must be a loopback address", exitConfig},
		{"proxy: {listen: '" + taken.Addr().String() + "'}\n", "check what else listens there", exitUnavailable},
	} {
		path := filepath.Join(t.TempDir(), "quorumd.yaml")
		text := "cluster: {name: prod, endpoints: ['http://192.0.2.1:2379']}\n" +
			"etcd: {clientURL: 'http://192.0.2.1:2379', peerURL: 'http://192.0.2.1:2380'}\n" + c.proxy
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Proxy(t.Context(), path, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.says) || ExitCode(err) != c.code {
			t.Errorf("%q: %v, exit %d; want %q and %d", c.proxy, err, ExitCode(err), c.says, c.code)
		}
	}
}

// TestSurplusScrapesOfTheProxyWait checks that scrapes do not use up the open files for client connections.
func TestSurplusScrapesOfTheProxyWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempdir.New(t), metricsSocket)
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	f := proxy.New(proxy.Options{Elapsed: sinceBoot, Logger: log})
	if err := serveProxyMetrics(ctx, group, path, f, log); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	answers := func(conn net.Conn, within time.Duration) error {
		if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	const patience = 20 * time.Second
	var open []net.Conn
	for range scrapesPerAddress {
		open = append(open, dial())
	}
	for _, conn := range open {
		if err := answers(conn, patience); err != nil {
			t.Fatal(err)
		}
	}
	more := dial()
	if err := answers(more, 500*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a surplus scrape does not wait: %v", err)
	}
	open[0].Close()
	if err := answers(more, patience); err != nil {
		t.Errorf("no answer after another scrape ended: %v", err)
	}
}
