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
	connectBound = 3 * time.Second // in which the kernel sends its SYN three times
	answerBound  = 2 * time.Second // of a question that was sent
	mostOfAnswer = 256 << 10       // bytes that are read
	padding      = 10 << 10        // bytes by which a large question is larger: more than a jumbo frame takes
	paddingPart  = 255             // the longest name of a protocol that TLS may offer
)

// look is what one look at a port has found.
type look struct {
	state  State
	took   time.Duration // to connect
	large  bool          // a question larger than a packet was asked
	barred bool
	unsure bool // no connection was made, for a reason that may lie on this host, or in its names

	sent, resent uint64 // segments of TCP; both 0 when the kernel does not tell
}

// port is where to look.
type port struct {
	address, host string
	secured       bool
}

// portOf reads a URL of etcd's member list.
func portOf(address string) (port, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return port{}, false
	}
	return port{u.Host, u.Hostname(), u.Scheme == "https"}, true
}

// looker asks one question at a time.
type looker struct {
	tls    func() *tls.Config // nil, or gives nil: without a certificate
	answer time.Duration      // how long one is waited for
}

// look asks a port whether it is there. A large question that is not answered is followed by a small one, which tells
// what is lost: everything, or only what is large.
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
	case at.secured: // its answer is large, with the certificates: what it cannot read it only hangs up on
		again = l.ask(ctx, at, plain("GET / HTTP/1.0\r\n\r\n"))
	}
	if again.state == Answers {
		found.state = LargeLost
	}
	return found
}

// question asks on a connection, and waits for an answer. It tells whether this host's certificate was refused.
type question func(context.Context, net.Conn) (barred bool, err error)

// ask connects, and gives what came of a question.
func (l looker) ask(ctx context.Context, at port, asks question) look {
	ctx, cancel := context.WithTimeout(ctx, connectBound+l.answer)
	defer cancel()
	began := time.Now()
	dialer := net.Dialer{
		Timeout: connectBound, FallbackDelay: -1,
		Control: func(string, string, syscall.RawConn) error { began = time.Now(); return nil }, // its name is known
	}
	conn, err := dialer.DialContext(ctx, "tcp", at.address)
	took := time.Since(began)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return look{state: Refused}
	}
	if err != nil {
		return look{state: Unreachable, unsure: !nobodyThere(err)}
	}
	defer conn.Close() // nothing was written that could be lost
	if err := conn.SetDeadline(time.Now().Add(l.answer)); err != nil {
		return look{state: Unreachable, unsure: true}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // called off: it waits no longer
	defer stop()
	hears := &heard{Conn: conn}
	barred, err := asks(ctx, hears)
	found := look{state: Answers, took: took, barred: barred}
	found.sent, found.resent = segments(conn)
	if hears.bytes == 0 && late(err) {
		found.state = Silent
	}
	return found
}

// segments gives how many a connection has sent: the one that opened it, and those with data; and how many again.
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
	told := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if told != nil || err != nil {
		return 0, 0
	}
	return 1 + uint64(info.Data_segs_out), uint64(info.Total_retrans)
}

// late tells of an error that it means that nothing came. Whoever hangs up has heard the question.
func late(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}

// nobodyThere tells of the error of a connection that was not made that it is the other side's, or the network's.
func nobodyThere(err error) bool {
	_, unnamed := errors.AsType[*net.DNSError](err)
	return !unnamed && (late(err) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.ECONNRESET))
}

// heard counts what comes in, and ends what has no end.
type heard struct {
	net.Conn

	bytes int
}

func (h *heard) Read(b []byte) (int, error) {
	if h.bytes >= mostOfAnswer {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := h.Conn.Read(b[:min(len(b), mostOfAnswer-h.bytes)])
	h.bytes += n
	return n, err
}

// question gives what to ask a port of etcd.
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
		// With TLS 1.3 the other side looks at the certificate when this side is done already. It says that it refuses
		// it, and hangs up; but what was asked meanwhile resets the connection, and may destroy those words.
		return err != nil && !late(err), err
	}
}

// hello is the beginning of TLS: of two small packets at most unless it shall be large.
func (l looker) hello(at port, large bool) *tls.Config {
	conf := &tls.Config{}
	if l.tls != nil {
		if own := l.tls(); own != nil {
			conf = own
		}
	}
	conf.ServerName, conf.MinVersion = at.host, tls.VersionTLS12
	// Whoever answers, the way is there. Nothing is told to whoever that is, and nothing believed.
	conf.InsecureSkipVerify = true
	conf.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256} // newer ones fill a packet alone
	conf.NextProtos = []string{"http/1.1"}
	for n := 0; large && n < padding; n += paddingPart {
		conf.NextProtos = append(conf.NextProtos, fmt.Sprintf("%0*d", paddingPart, n))
	}
	return conf
}

// plain asks and reads the beginning of the answer.
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

// refuses tells whether the other side does not want this host's certificate.
func refuses(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error" // as crypto/tls calls an alert of the other side
}
