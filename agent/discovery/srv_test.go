// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// target is the target of a service record.
type target struct {
	name string
	port uint16
}

// names is a name server on the loopback interface with the test's records.
type names struct {
	conn    net.PacketConn
	records atomic.Pointer[[]target] // nil: no answer
	asked   atomic.Pointer[string]
	garbage atomic.Bool
}

func newNames(t *testing.T) *names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve()
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return n
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buffer := make([]byte, 4096)
	for {
		size, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(buffer[:size]); err != nil || len(m.Questions) != 1 {
			continue
		}
		question := m.Questions[0]
		name := question.Name.String()
		n.asked.Store(&name)
		records := n.records.Load()
		switch {
		case n.garbage.Load():
			_, _ = n.conn.WriteTo([]byte("hello"), from)
			continue
		case records == nil:
			continue
		}
		m = dnsmessage.Message{
			Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true},
			Questions: m.Questions,
		}
		for _, one := range *records {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{
					Name: question.Name, Type: dnsmessage.TypeSRV, Class: dnsmessage.ClassINET,
				},
				Body: &dnsmessage.SRVResource{Target: dnsmessage.MustNewName(one.name), Port: one.port},
			})
		}
		packed, err := m.Pack()
		if err != nil {
			return
		}
		_, _ = n.conn.WriteTo(packed, from)
	}
}

func TestServiceRecordsAreReadAsEtcdsOwnClientsDo(t *testing.T) {
	t.Parallel()
	n := newNames(t)
	n.records.Store(&[]target{{"n2.example.com.", 2379}, {"n1.example.com.", 2379}})
	for scheme, asked := range map[string]string{
		"https": "_etcd-client-ssl._tcp.example.com.", "http": "_etcd-client._tcp.example.com.",
	} {
		found, err := SRV(n.resolver(), "example.com", scheme)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, err = Accept(found, scheme)
		want := []string{scheme + "://n1.example.com:2379", scheme + "://n2.example.com:2379"}
		if err != nil || !slices.Equal(found, want) || *n.asked.Load() != asked {
			t.Errorf("%v %v, asked for %s", found, err, *n.asked.Load())
		}
	}
}

func TestHostileOrHungNameServerYieldsNoEndpoints(t *testing.T) {
	t.Parallel()
	n := newNames(t)
	ask := func() ([]string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		found, err := SRV(n.resolver(), "example.com", "https")(ctx)
		if err == nil {
			found, err = Accept(found, "https")
		}
		return found, err
	}
	began := time.Now()
	if found, err := ask(); err == nil || !strings.Contains(err.Error(), "_etcd-client-ssl._tcp.example.com") {
		t.Errorf("no error: %v %v", found, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	n.garbage.Store(true)
	if found, err := ask(); err == nil {
		t.Errorf("garbage: %v", found)
	}
	n.garbage.Store(false)
	for what, records := range map[string][]target{
		"no records":         {},
		"no host":            {{".", 2379}},
		"no port":            {{"n1.example.com.", 0}},
		"a malformed target": {{"n1.example.com.", 2379}, {"-x y.example.com.", 2379}},
	} {
		n.records.Store(&records)
		if found, err := ask(); err == nil {
			t.Errorf("%s: %v", what, found)
		}
	}
}
