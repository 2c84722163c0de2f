// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// behindProxy returns a connection through a new proxy, and the server's end of that connection.
func behindProxy(t *testing.T) (p *testbed.Proxy, client, server *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p = testbed.NewProxy(t, listener.Addr().String())
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{conn, accepted} {
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(bound)); err != nil {
			t.Fatal(err)
		}
	}
	return p, conn.(*net.TCPConn), accepted.(*net.TCPConn)
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("got %q and %v, want %q", got[:n], err, text)
	}
}

// expectSilence checks that no bytes arrive within a time in which they normally would.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes and %v, want silence", n, err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(bound)); err != nil {
		t.Fatal(err)
	}
}

func TestAProxyWithoutFaultsPassesMegabytesAndHalfCloses(t *testing.T) {
	t.Parallel()
	_, client, server := behindProxy(t)
	sent := make([]byte, 5<<20)
	_, _ = rand.Read(sent) // never fails
	go func() {
		_, _ = client.Write(sent)
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes of %d, %v", len(got), len(sent), err)
	}
	send(t, server, "answered after the request ended")
	expect(t, client, "answered after the request ended")
}

func TestACutHoldsBothDirectionsAndTheEndAndDeliversThemInOrderWhenHealed(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	p.Set(testbed.Cut())
	send(t, client, "one ")
	send(t, server, "uno ")
	expectSilence(t, server)
	expectSilence(t, client)
	send(t, client, "two")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expectSilence(t, server)
	p.Set(testbed.Faults{})
	expect(t, server, "one two")
	expect(t, client, "uno ")
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the last byte: %v, want EOF", err)
	}
}

func TestEachDirectionCanBeHeldAlone(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	p.Set(testbed.Faults{HoldResponses: true})
	send(t, client, "request")
	expect(t, server, "request")
	send(t, server, "response")
	expectSilence(t, client)
	p.Set(testbed.Faults{HoldRequests: true})
	expect(t, client, "response")
	send(t, client, "next")
	expectSilence(t, server)
	p.Set(testbed.Faults{})
	expect(t, server, "next")
}

func TestRefuseRefusesNewConnectionsOnly(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	for range 3 {
		p.Set(testbed.Faults{Refuse: true})
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v, want connection refused", err)
		}
		send(t, client, "still here")
		expect(t, server, "still here")
		p.Set(testbed.Faults{})
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestResetEndsBothSidesAtOnceAndLosesHeldBytes(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	p.Set(testbed.Cut())
	send(t, client, "lost")
	expectSilence(t, server)
	p.Reset()
	for _, conn := range []net.Conn{client, server} {
		if n, err := conn.Read(make([]byte, 8)); n > 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %d bytes and %v, want a reset", n, err)
		}
	}
}

func TestADelayIsLatencyAndNotARate(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	const delay, count = 200 * time.Millisecond, 20
	p.Set(testbed.Faults{Delay: delay})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	go func() {
		for i := range count {
			<-tick.C
			_, _ = fmt.Fprintf(client, "%02d", i)
		}
	}()
	began := time.Now()
	expect(t, server, "00")
	if took := time.Since(began); took < delay {
		t.Errorf("the first came after %v, want at least %v", took, delay)
	}
	for i := 1; i < count; i++ {
		expect(t, server, fmt.Sprintf("%02d", i))
	}
	if took := time.Since(began); took > count*delay/2 {
		t.Errorf("the last came after %v: they waited for each other", took)
	}
}

func TestARateSpreadsTheBytesUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	p, client, server := behindProxy(t)
	p.Set(testbed.Faults{Rate: 100_000})
	began := time.Now()
	send(t, client, strings.Repeat("x", 40_000))
	expect(t, server, strings.Repeat("x", 40_000))
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("40 kB at 100 kB/s took %v", took)
	}
	p.Set(testbed.Faults{Rate: 1})
	send(t, client, strings.Repeat("y", 1000))
	expect(t, server, "y")
	p.Set(testbed.Faults{})
	expect(t, server, strings.Repeat("y", 999))
}

func TestAConnectionToATargetThatIsDownIsReset(t *testing.T) {
	t.Parallel()
	p := testbed.NewProxy(t, fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0]))
	conn, err := net.Dial("tcp", p.Addr())
	if err == nil { // the reset may be faster than Dial
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestCloseEndsWithConnectionsOpenHeldAndFull(t *testing.T) {
	t.Parallel()
	p, client, _ := behindProxy(t)
	p.Set(testbed.Cut())
	written := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, 64<<20)) // more than everything in between can hold
		written <- err
	}()
	expectSilence(t, client)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err == nil {
		t.Error("the write of 64 MiB into a cut succeeded")
	}
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v, want connection refused", err)
	}
}

func TestAPutWhoseResponseIsHeldTimesOutAndHasTakenEffect(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
	member := c.Members[0]
	p := testbed.NewProxy(t, strings.TrimPrefix(member.Options.ClientURL, "http://"))
	proxied := &testbed.Cluster{Members: []*testbed.Member{{Options: testbed.MemberOptions{ClientURL: "http://" +
		p.Addr()}}}}
	through, direct := proxied.Client(t), c.Client(t)
	if _, err := through.Put(within(t), "key", "before"); err != nil {
		t.Fatal(err)
	}
	p.Set(testbed.Faults{HoldResponses: true})
	ctx, cancel := context.WithTimeout(within(t), 300*time.Millisecond)
	defer cancel()
	if _, err := through.Put(ctx, "key", "during"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want deadline exceeded", err)
	}
	got, err := direct.Get(within(t), "key")
	if err != nil || string(got.Kvs[0].Value) != "during" {
		t.Errorf("the store has %v, %v", got, err)
	}
	p.Set(testbed.Faults{})
	if _, err := through.Put(within(t), "key", "after"); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}
