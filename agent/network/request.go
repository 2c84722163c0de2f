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

	"github.com/quorumd/quorumd/agent/record"
)

const (
	connectBound = 3 * time.Second // the kernel sends at least two SYNs in that time
	answerBound  = 2 * time.Second // how long the answer to a request may take
	maxAnswer    = 256 << 10       // bytes read
	padding      = 10 << 10        // bytes added to a large request: more than a jumbo frame holds
	paddingPart  = 255             // the longest protocol name in TLS
)

// result is the outcome of one probe of a port.
type result struct {
	state       record.PortState
	took        time.Duration // the time to connect
	large       bool          // the request was larger than a packet
	certRefused bool
	unsure      bool // the probe did not connect, and this host or DNS may be the cause

	sent, resent uint64 // TCP segments; both 0 if the kernel does not report them
}

// target is an address to probe.
type target struct {
	address, host string
	secured       bool
}

// parseTarget parses a URL of etcd's member list.
func parseTarget(address string) (target, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return target{}, false
	}
	return target{u.Host, u.Hostname(), u.Scheme == "https"}, true
}

// requester sends the requests of probes.
type requester struct {
	tls    func() *tls.Config // nil or returns nil if there is no certificate
	answer time.Duration      // timeout for the answer
}

// probe probes a port. If nothing comes back, and the request or the answer was large, it sends a small request with a
// small answer, to find out whether only large packets are lost.
func (l requester) probe(ctx context.Context, at target, large bool) result {
	found := l.send(ctx, at, l.version(at, large))
	found.large = large
	if found.state != record.PortSilent {
		return found
	}
	again := result{state: record.PortSilent}
	switch {
	case large && !at.secured:
		again = l.send(ctx, at, l.version(at, false))
	// a TLS answer contains certificates and is large; a TLS port answers plain text by closing the connection
	case at.secured:
		again = l.send(ctx, at, raw("GET / HTTP/1.0\r\n\r\n"))
	}
	if again.state == record.PortAnswers {
		found.state = record.PortLargeLost
	}
	return found
}

// exchange sends a request and waits for an answer. certRefused reports whether the server refused this host's
// certificate.
type exchange func(context.Context, net.Conn) (certRefused bool, err error)

// send connects, sends a request and returns the result.
func (l requester) send(ctx context.Context, at target, request exchange) result {
	ctx, cancel := context.WithTimeout(ctx, connectBound+l.answer)
	defer cancel()
	began := time.Now()
	dialer := net.Dialer{
		Timeout: connectBound, FallbackDelay: -1,
		Control: func(string, string, syscall.RawConn) error { began = time.Now(); return nil }, // after DNS
	}
	conn, err := dialer.DialContext(ctx, "tcp", at.address)
	took := time.Since(began)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return result{state: record.PortRefused}
	}
	if err != nil {
		return result{state: record.PortUnreachable, unsure: !peerUnreachable(err)}
	}
	defer conn.Close() // the answer is complete or no longer needed
	if err := conn.SetDeadline(time.Now().Add(l.answer)); err != nil {
		return result{state: record.PortUnreachable, unsure: true}
	}
	// if the context is cancelled, stop waiting
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	counted := &limited{Conn: conn}
	certRefused, err := request(ctx, counted)
	found := result{state: record.PortAnswers, took: took, certRefused: certRefused}
	found.sent, found.resent = segments(conn)
	if counted.bytes == 0 && isTimeout(err) {
		found.state = record.PortSilent
	}
	return found
}

// segments returns how many TCP segments a connection has sent (the SYN and segments with data), and how many it has
// retransmitted.
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

// isTimeout reports whether an error means that the peer did not answer. A peer that closes the connection has
// answered.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}

// peerUnreachable reports whether a connection failed because of the peer or the network. It returns false if this host
// may be the cause.
func peerUnreachable(err error) bool {
	_, unnamed := errors.AsType[*net.DNSError](err)
	return !unnamed && (isTimeout(err) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ECONNRESET))
}

// limited counts the bytes read, and fails after maxAnswer.
type limited struct {
	net.Conn

	bytes int
}

func (h *limited) Read(b []byte) (int, error) {
	if h.bytes >= maxAnswer {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.Conn.Read(b[:min(len(b), maxAnswer-h.bytes)])
	h.bytes += n
	return n, err
}

// version returns a request for /version.
func (l requester) version(at target, large bool) exchange {
	pad := ""
	if large {
		pad = "X-Padding: " + strings.Repeat("p", padding) + "\r\n"
	}
	request := raw(fmt.Sprintf(
		"GET /version HTTP/1.1\r\nHost: %s\r\nUser-Agent: quorumd\r\n%sConnection: close\r\n\r\n",
		at.address, pad))
	if !at.secured {
		return request
	}
	conf := l.clientConfig(at, large)
	return func(ctx context.Context, conn net.Conn) (bool, error) {
		secured := tls.Client(conn, conf)
		if err := secured.HandshakeContext(ctx); err != nil {
			return isCertificateRefused(err), err
		}
		_, err := request(ctx, secured)
		// With TLS 1.3 the server checks the certificate after the client's handshake is complete. It sends an alert
		// and closes the connection, but data that the client sends in the meantime can reset the connection and so
		// discard the alert.
		return err != nil && !isTimeout(err), err
	}
}

// clientConfig returns a TLS configuration whose ClientHello fits into one small packet or, if large is set, is larger
// than a packet.
func (l requester) clientConfig(at target, large bool) *tls.Config {
	conf := &tls.Config{}
	if l.tls != nil {
		if own := l.tls(); own != nil {
			conf = own
		}
	}
	conf.ServerName, conf.MinVersion = at.host, tls.VersionTLS12
	// Any answer proves that the network path works. The request contains no secrets, and the answer is discarded.
	conf.InsecureSkipVerify = true
	// the key share of a newer curve alone fills a packet
	conf.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	conf.NextProtos = []string{"http/1.1"}
	for n := 0; large && n < padding; n += paddingPart {
		conf.NextProtos = append(conf.NextProtos, fmt.Sprintf("%0*d", paddingPart, n))
	}
	return conf
}

// raw returns a request that sends the given string and reads the beginning of the answer.
func raw(text string) exchange {
	return func(_ context.Context, conn net.Conn) (bool, error) {
		if _, err := io.WriteString(conn, text); err != nil {
			return false, err
		}
		var beginning [64]byte
		_, err := conn.Read(beginning[:])
		return false, err
	}
}

// isCertificateRefused reports whether the server refuses this host's certificate.
func isCertificateRefused(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error" // crypto/tls reports the peer's alerts that way
}
