// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	connectBound = 3 * time.Second // the kernel sends three SYNs in that time
	answerBound  = 2 * time.Second // for a sent request
	mostOfAnswer = 256 << 10       // bytes read
	padding      = 10 << 10        // bytes added to a large request: more than a jumbo frame holds
	paddingPart  = 255             // the longest protocol name in TLS
)

// look is the result of one probe of a port.
type look struct {
	state  State
	took   time.Duration // to connect
	large  bool          // the request was larger than a packet
	barred bool
	unsure bool // there was no connection, for a reason that may be on this host or in DNS

	sent, resent uint64 // TCP segments; both 0 if the kernel does not report them
}

// port is an address to probe.
type port struct {
	address, host string
	secured       bool
}

// portOf parses a URL of etcd's member list.
func portOf(address string) (port, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return port{}, false
	}
	return port{u.Host, u.Hostname(), u.Scheme == "https"}, true
}

// looker sends one request at a time.
type looker struct {
	tls    func() *tls.Config // nil, or returns nil: no certificate
	answer time.Duration      // timeout of an answer
}

// look probes a port. If a large request is not answered, a small one follows. It shows whether everything is lost or
// only large packets.
func (l looker) look(ctx context.Context, at port, large bool) look {
	found := l.ask(ctx, at, l.question(at, large))
	found.large = large
	if found.state != Silent {
		return found
	}
	again := look{state: Silent}
	switch {
	case large && !at.secured:
		again = l.ask(ctx, at, l.question(at, false))
	case at.secured: // its answer with the certificates is large; to invalid input it only closes the connection
		again = l.ask(ctx, at, plain("GET / HTTP/1.0\r\n\r\n"))
	}
	if again.state == Answers {
		found.state = LargeLost
	}
	return found
}

// question sends a request and waits for an answer. barred reports whether this host's certificate was refused.
type question func(context.Context, net.Conn) (barred bool, err error)

// ask connects, sends a request and returns the result.
func (l looker) ask(ctx context.Context, at port, asks question) look {
	ctx, cancel := context.WithTimeout(ctx, connectBound+l.answer)
	defer cancel()
	began := time.Now()
	dialer := net.Dialer{
		Timeout: connectBound, FallbackDelay: -1,
		Control: func(string, string, syscall.RawConn) error { began = time.Now(); return nil }, // DNS is done
	}
	conn, err := dialer.DialContext(ctx, "tcp", at.address)
	took := time.Since(began)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return look{state: Refused}
	}
	if err != nil {
		return look{state: Unreachable, unsure: !peerUnreachable(err)}
	}
	defer conn.Close() // no written data can be lost
	if err := conn.SetDeadline(time.Now().Add(l.answer)); err != nil {
		return look{state: Unreachable, unsure: true}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // cancelled: stop waiting
	defer stop()
	counted := &limited{Conn: conn}
	barred, err := asks(ctx, counted)
	found := look{state: Answers, took: took, barred: barred}
	found.sent, found.resent = segments(conn)
	if counted.bytes == 0 && late(err) {
		found.state = Silent
	}
	return found
}

// segments returns how many TCP segments a connection has sent, counting the SYN and those with data, and how many it
// has sent again.
func segments(conn net.Conn) (sent, resent uint64) {
	tcp, is := conn.(*net.TCPConn)
	if !is {
		return 0, 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, 0
	}
	var info *unix.TCPInfo
	outer := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if outer != nil || err != nil {
		return 0, 0
	}
	return 1 + uint64(info.Data_segs_out), uint64(info.Total_retrans)
}

// late reports whether an error means that nothing was received. A peer that closes the connection has received
// something.
func late(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}

// peerUnreachable reports whether a failed connection is the fault of the peer or the network, and not of this host.
func peerUnreachable(err error) bool {
	_, unnamed := errors.AsType[*net.DNSError](err)
	return !unnamed && (late(err) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ECONNRESET))
}

// limited counts the bytes read, and ends endless input.
type limited struct {
	net.Conn

	bytes int
}

func (h *limited) Read(b []byte) (int, error) {
	if h.bytes >= mostOfAnswer {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.Conn.Read(b[:min(len(b), mostOfAnswer-h.bytes)])
	h.bytes += n
	return n, err
}

// question returns the request for a port of etcd.
func (l looker) question(at port, large bool) question {
	pad := ""
	if large {
		pad = "X-Padding: " + strings.Repeat("p", padding) + "\r\n"
	}
	ask := plain(fmt.Sprintf("GET /version HTTP/1.1\r\nHost: %s\r\nUser-Agent: quorumd\r\n%sConnection: close\r\n\r\n",
		at.address, pad))
	if !at.secured {
		return ask
	}
	conf := l.hello(at, large)
	return func(ctx context.Context, conn net.Conn) (bool, error) {
		secured := tls.Client(conn, conf)
		if err := secured.HandshakeContext(ctx); err != nil {
			return refuses(err), err
		}
		_, err := ask(ctx, secured)
		// With TLS 1.3 the server checks the certificate after the client's handshake is complete. It sends an alert
		// and closes the connection, but data sent in the meantime resets the connection and may destroy the alert.
		return err != nil && !late(err), err
	}
}

// hello starts TLS, with at most two small packets unless it is to be large.
func (l looker) hello(at port, large bool) *tls.Config {
	conf := &tls.Config{}
	if l.tls != nil {
		if own := l.tls(); own != nil {
			conf = own
		}
	}
	conf.ServerName, conf.MinVersion = at.host, tls.VersionTLS12
	// Any answer proves that the network path works. No data is sent to the server, and none of its data is trusted.
	conf.InsecureSkipVerify = true
	conf.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256} // newer curves fill a packet alone
	conf.NextProtos = []string{"http/1.1"}
	for n := 0; large && n < padding; n += paddingPart {
		conf.NextProtos = append(conf.NextProtos, fmt.Sprintf("%0*d", paddingPart, n))
	}
	return conf
}

// plain sends a text and reads the beginning of the answer.
func plain(text string) question {
	return func(_ context.Context, conn net.Conn) (bool, error) {
		if _, err := io.WriteString(conn, text); err != nil {
			return false, err
		}
		var beginning [64]byte
		_, err := conn.Read(beginning[:])
		return false, err
	}
}

// refuses reports whether the server refuses this host's certificate.
func refuses(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error" // crypto/tls reports the peer's alerts that way
}
