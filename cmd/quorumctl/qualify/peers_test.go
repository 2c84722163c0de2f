// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// listening returns the address of a listener that serves each connection until the test ends.
func listening(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var conns []net.Conn
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			go serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
		for _, c := range conns {
			c.Close()
		}
	})
	return l.Addr().String()
}

// full returns an address whose host drops connections silently: the listener's queue is full.
func full(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return address
}

func TestEveryStateOfAPeerIsReported(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	plain, secured := httptest.NewServer(answer), httptest.NewUnstartedServer(answer)
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secured.Close)
	gone := httptest.NewServer(answer)
	gone.Close()
	for _, c := range []struct {
		name, address string
		result        Result
		text          string
	}{
		{"plain", plain.Listener.Addr().String(), Pass, "large packets arrive"},
		{"secured", secured.Listener.Addr().String(), Pass, "large packets arrive"},
		{"gone", gone.Listener.Addr().String(), Warn, "no server listens there; the host refused within "},
		{"full", full(t), Fail, "no connection: no answer within 2s"},
		{"no name", "unknown.invalid:2380", Fail, "no connection: the name cannot be resolved: "},
		{
			"silent",
			listening(t, func(net.Conn) {}),
			NotAvailable,
			"whether large packets arrive is unknown, because the server answers no request",
		},
		{
			"large requests are lost",
			listening(t, func(c net.Conn) {
				b := make([]byte, 8192)
				if n, err := c.Read(b); err == nil && n < 1000 {
					fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
				}
			}),
			Fail,
			"a request of 10240 bytes is lost, but a small one is answered",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var r Report
			r.testPeers(t.Context(), []string{c.address})
			for range 4 { // on a busy machine, a handshake may take longer than a heartbeat
				if !strings.Contains(r.Findings[0].Text, "longer than etcd's heartbeat") {
					break
				}
				r = Report{}
				r.testPeers(t.Context(), []string{c.address})
			}
			p, f := r.Peers[0], r.Findings[0]
			if p.Address != c.address || p.Tries == 0 || f.Name != "network to "+c.address || f.Result != c.result ||
				!strings.Contains(f.Text, c.text) {
				t.Errorf("%+v, %+v", p, f)
			}
			if c.result == Pass && (p.Tries != connects || p.P50 <= 0 || p.P50 > p.P99 || p.P99 > p.Max) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestSlowOrLossyPeerIsReported(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]Peer{
		"50 of 50 connections were answered, p99 150 ms, longer than etcd's heartbeat of 100ms": {
			Tries: 50, P99: 0.15, Small: true, Large: true,
		},
		"1 of 50 connections failed: no answer within 2s": {
			Tries: 50, Failed: 1, Error: "no answer within 2s",
		},
		"no connection: the test was interrupted before it tried to connect": {},
	} {
		var r Report
		r.judgePeer(p)
		if f := r.Findings[0]; f.Text != text || f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestInterruptionEndsTheAttempts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p := testPeer(ctx, "127.0.0.1:1"); p.Tries != 0 {
		t.Errorf("%+v", p)
	}
}

func TestInvalidPeerAddressIsRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "n1", ":2380", "n1:", "http://n1:2380", "n1:2380/health", "::1:2380"} {
		if err := CheckPeer(address); err == nil || !strings.HasSuffix(err.Error(), "use HOST:PORT") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"n1:2380", "192.0.2.1:2380", "[2001:db8::1]:2380"} {
		if err := CheckPeer(address); err != nil {
			t.Error(err)
		}
	}
}
