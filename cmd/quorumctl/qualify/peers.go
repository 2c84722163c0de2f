// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

const (
	// MostPeers is the maximum number of peers.
	MostPeers = 16
	// connects is the number of connections to each peer, and connectRest their interval.
	connects    = 50
	connectRest = 20 * time.Millisecond
	// peerPatience is the timeout of a connection and of a response.
	peerPatience = 2 * time.Second
	// mostFailures is the number of failures after which the attempts end, because each failure may take the whole
	// timeout.
	mostFailures = 3
	// padding makes a request larger than any Ethernet packet, including jumbo frames.
	padding = 10 << 10
	// heartbeat is etcd's default heartbeat interval. It should be about one round trip.
	heartbeat = 100 * time.Millisecond
)

// Peer is the result for one address. Its times are how long a TCP connection took to open or to be refused, in
// seconds.
type Peer struct {
	Address string `json:"address"`
	// Tries counts all connection attempts, and Failed those without any response. A refused connection is a response.
	Tries   int     `json:"tries"`
	Failed  int     `json:"failed"`
	Refused int     `json:"refused"`
	Error   string  `json:"error,omitempty"` // error of the last failed or refused attempt
	P50     float64 `json:"p50Seconds"`
	P99     float64 `json:"p99Seconds"`
	Max     float64 `json:"maxSeconds"`
	// Small and Large report whether a request that fits into one packet, and a larger one, were answered.
	Small bool `json:"smallAnswered"`
	Large bool `json:"largeAnswered"`
}

// CheckPeer returns an error unless the address is HOST:PORT.
func CheckPeer(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || strings.Contains(address, "/") {
		return fmt.Errorf("%q is not an address; use HOST:PORT", address)
	}
	return nil
}

// testPeers tests all addresses in parallel.
func (r *Report) testPeers(ctx context.Context, addresses []string) {
	r.Peers = make([]Peer, len(addresses))
	var wait sync.WaitGroup
	for i, address := range addresses {
		wait.Go(func() { r.Peers[i] = testPeer(ctx, address) })
	}
	wait.Wait()
	for _, p := range r.Peers {
		r.judgePeer(p)
	}
}

// testPeer connects to one address repeatedly, then sends requests.
func testPeer(ctx context.Context, address string) Peer {
	p := Peer{Address: address}
	var took []time.Duration
	rest := time.NewTicker(connectRest)
	defer rest.Stop()
	for p.Tries < connects && p.Failed < mostFailures && ctx.Err() == nil {
		conn, length, err := connect(ctx, address)
		p.Tries++
		switch {
		case err == nil:
			conn.Close()
			took = append(took, length)
		case errors.Is(err, syscall.ECONNREFUSED):
			p.Refused, p.Error = p.Refused+1, "connection refused"
			took = append(took, length)
		default:
			p.Failed, p.Error = p.Failed+1, cause(err)
		}
		<-rest.C
	}
	s := sorted(took)
	p.P50, p.P99, p.Max = s.at(0.5).Seconds(), s.at(0.99).Seconds(), s.at(1).Seconds()
	if p.Refused+p.Failed < p.Tries {
		p.Large = answers(ctx, address, padding)
		p.Small = p.Large || answers(ctx, address, 0)
	}
	return p
}

// connect returns a connection and the time to connect without name resolution.
func connect(ctx context.Context, address string) (net.Conn, time.Duration, error) {
	began := time.Now()
	dialer := net.Dialer{
		Timeout: peerPatience, FallbackDelay: -1,
		Control: func(string, string, syscall.RawConn) error { began = time.Now(); return nil },
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	return conn, time.Since(began), err
}

// cause describes an error without the addresses, which the finding already contains.
func cause(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "the name cannot be resolved: " + e.Err
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "no answer within " + durationfmt.Text(peerPatience)
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	return err.Error()
}

// answers requests the version in plain HTTP, with this many bytes of padding, and reports whether the request arrived.
// Any response counts, even an error, for example because the request is too large or needs TLS. So does a closed
// connection.
func answers(ctx context.Context, address string, padding int) bool {
	conn, _, err := connect(ctx, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(peerPatience)); err != nil {
		return false
	}
	request := fmt.Sprintf("GET /version HTTP/1.1\r\nHost: %s\r\nUser-Agent: quorumctl\r\nX-Padding: %s\r\n"+
		"Connection: close\r\n\r\n", address, strings.Repeat("p", padding))
	if _, err := io.WriteString(conn, request); err != nil {
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	var first [1]byte
	_, err = conn.Read(first[:])
	return !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ETIMEDOUT)
}

func (r *Report) judgePeer(p Peer) {
	const (
		down = "start the server, or name a port on which one listens"
		path = "check the firewall, the route and the cable"
		slow = "set --heartbeat-interval to that p99 and --election-timeout to ten times as much, on all members"
		mtu  = "use the same MTU along the whole path, and allow ICMP 'fragmentation needed'"
	)
	name := "network to " + p.Address
	answered := p.Tries - p.Failed
	figure := fmt.Sprintf("%d of %d connections were answered, p99 %s", answered, p.Tries, show(p.P99))
	switch {
	case answered == 0:
		r.find(name, Fail, path, "no connection: %s", cmp.Or(p.Error,
			"the test was interrupted before it tried to connect"))
	case p.Failed > 0:
		r.find(name, Fail, path, "%d of %d connections failed: %s", p.Failed, p.Tries, p.Error)
	case p.Refused == p.Tries:
		r.find(name, Warn, down, "no server listens there; the host refused within %s", show(p.P99))
	case p.Small && !p.Large:
		r.find(name, Fail, mtu, "a request of %d bytes is lost, but a small one is answered", padding)
	case p.P99 > heartbeat.Seconds():
		r.find(name, Warn, slow, "%s, longer than etcd's heartbeat of %s", figure, durationfmt.Text(heartbeat))
	case !p.Large:
		r.find(name, NotAvailable, "",
			"%s; whether large packets arrive is unknown, because the server answers no request", figure)
	default:
		r.find(name, Pass, "", "%s; large packets arrive", figure)
	}
}
