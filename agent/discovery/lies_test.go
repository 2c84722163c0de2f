// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// hostileServer is a name server on the loopback interface. It truncates each answer over UDP, and sends the complete
// answer over TCP.
type hostileServer struct {
	udp net.PacketConn
	tcp net.Listener
	// answer returns the resources to send.
	answer func(dnsmessage.Question) []dnsmessage.Resource
}

func newHostileServer(t *testing.T, answer func(dnsmessage.Question) []dnsmessage.Resource) *hostileServer {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &hostileServer{udp: udp, tcp: tcp, answer: answer}
	var wait sync.WaitGroup
	wait.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := udp.ReadFrom(buffer)
			if err != nil {
				return
			}
			if packed, ok := l.reply(buffer[:n], true); ok {
				_, _ = udp.WriteTo(packed, from)
			}
		}
	})
	wait.Go(func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			l.serve(conn)
		}
	})
	t.Cleanup(func() { udp.Close(); tcp.Close(); wait.Wait() })
	return l
}

func (l *hostileServer) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, question); err != nil {
		return
	}
	if packed, ok := l.reply(question, false); ok {
		size := uint16(len(packed)) //nolint:gosec // reply bounds it
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, size), packed...))
	}
}

func (l *hostileServer) reply(question []byte, cut bool) ([]byte, bool) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, false
	}
	m = dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, Truncated: cut},
		Questions: m.Questions,
	}
	if !cut {
		m.Answers = l.answer(m.Questions[0])
	}
	packed, err := m.Pack()
	return packed, err == nil && len(packed) < 1<<16
}

func (l *hostileServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		if strings.HasPrefix(network, "tcp") {
			return (&net.Dialer{}).DialContext(ctx, "tcp", l.tcp.Addr().String())
		}
		return (&net.Dialer{}).DialContext(ctx, "udp", l.udp.LocalAddr().String())
	}}
}

func service(q dnsmessage.Question, target string) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.SRVResource{Target: dnsmessage.MustNewName(target), Port: 2379},
	}
}

func alias(q dnsmessage.Question, from, to string) dnsmessage.Resource {
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{
			Name: dnsmessage.MustNewName(from), Type: dnsmessage.TypeCNAME, Class: q.Class,
		},
		Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to)},
	}
}

func TestHostileDNSAnswersAreRefusedWithinBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(dnsmessage.Question) []dnsmessage.Resource
		want   string
	}{
		"thousands": {func(q dnsmessage.Question) (all []dnsmessage.Resource) {
			for i := range 2000 { // as many as fit into a message
				all = append(all, service(q, fmt.Sprintf("%d.n.", i)))
			}
			return all
		}, "the answer has 2000 endpoints; the maximum is 64"},
		"an empty target and a good one": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return []dnsmessage.Resource{service(q, "n1.example.com."), service(q, ".")}
		}, "is not a URL"},
		"a name that is its own alias": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return []dnsmessage.Resource{alias(q, q.Name.String(), q.Name.String())}
		}, "_etcd-client-ssl._tcp.example.com"},
		"two names that are each other's alias": {func(q dnsmessage.Question) []dnsmessage.Resource {
			return []dnsmessage.Resource{
				alias(q, q.Name.String(), "a.example.com."), alias(q, "a.example.com.", q.Name.String()),
			}
		}, "_etcd-client-ssl._tcp.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newHostileServer(t, c.answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			found, err := SRV(l.resolver(), "example.com", "https")(ctx)
			if err == nil {
				found, err = Accept(found, "https")
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
				t.Errorf("%v, %v; want %q", found, err, c.want)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 { // includes the concurrent tests
				t.Errorf("%d MiB were allocated", grown>>20)
			}
		})
	}
}
