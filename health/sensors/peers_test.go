// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// accepted returns the port of a listener that has accepted a connection, and has sent that many bytes on it, one by
// one.
func accepted(t *testing.T, network, address string, sent int) (port uint16) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	client, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	for range sent {
		if _, err := server.Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

func TestReadsSentSegmentsOfTheConnectionsToAPort(t *testing.T) {
	t.Parallel()
	networks := map[string]string{"tcp4": "127.0.0.1:0"}
	loopback := "00000000000000000000000000000001" // of IPv6, if this machine has it
	if all, err := os.ReadFile("/proc/net/if_inet6"); err == nil && strings.Contains(string(all), loopback) {
		networks["tcp6"] = "[::1]:0"
	}
	for network, address := range networks {
		port := accepted(t, network, address, 20)
		got := New().Peers(port)
		if !got.Known || len(got.All) != 1 || got.At <= 0 {
			t.Fatalf("%s: port %d: %+v", network, port, got)
		}
		c := got.All[0]
		if s := c.Segments; !netip.MustParseAddr(c.To).IsLoopback() || c.Cookie == 0 || !s.Known ||
			s.Among < 20 || s.Among > 40 {
			t.Errorf("%s: the connection is %+v, want 20 segments", network, c)
		}
	}
}

func TestAPortWithoutConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0") // so that the port is in use
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := New().Peers(netip.MustParseAddrPort(l.Addr().String()).Port()); !got.Known || len(got.All) != 0 {
		t.Errorf("a port without connections: %+v", got)
	}
}

// answerOf returns a kernel message with this body.
func answerOf(kind uint16, body []byte) []byte {
	m := binary.NativeEndian.AppendUint32(nil, uint32(diagHeader+len(body)))
	m = binary.NativeEndian.AppendUint16(m, kind)
	return append(append(m, make([]byte, diagHeader-len(m))...), body...)
}

func TestATruncatedAnswerOrAnErrorHasNoConnections(t *testing.T) {
	t.Parallel()
	whole := answerOf(unix.SOCK_DIAG_BY_FAMILY, make([]byte, diagWhole-diagHeader))
	all, last, err := parseAnswer(append(whole, answerOf(unix.NLMSG_DONE, nil)...))
	if len(all) != 1 || !last || err != nil || all[0].Segments.Known {
		t.Errorf("a connection without TCP information: %+v, %t, %v", all, last, err)
	}
	for name, answer := range map[string][]byte{
		"an error":            answerOf(unix.NLMSG_ERROR, make([]byte, 20)),
		"half a header":       whole[:diagHeader/2],
		"half a message":      whole[:diagWhole-1],
		"a short message":     answerOf(unix.SOCK_DIAG_BY_FAMILY, make([]byte, 8)),
		"an endless part":     answerOf(unix.SOCK_DIAG_BY_FAMILY, append(whole[diagHeader:], 255, 255, 2, 0)),
		"a part without size": answerOf(unix.SOCK_DIAG_BY_FAMILY, append(whole[diagHeader:], 0, 0, 2, 0)),
	} {
		if all, _, err := parseAnswer(answer); err == nil || len(all) > 0 {
			t.Errorf("%s is parsed as %+v", name, all)
		}
	}
}

func FuzzConnections(f *testing.F) {
	f.Add(answerOf(unix.NLMSG_DONE, nil))
	f.Add(answerOf(unix.SOCK_DIAG_BY_FAMILY, make([]byte, 400)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		all, _, err := parseAnswer(answer)
		if err != nil && len(all) > 0 || len(all) > len(answer)/diagWhole {
			t.Errorf("%d connections of %d bytes, and %v", len(all), len(answer), err)
		}
		for _, c := range all {
			if s := c.Segments; !s.Known && (s.Absent == "" || s.Of != 0 || s.Among != 0) {
				t.Errorf("unknown segments: %+v", s)
			}
		}
	})
}
