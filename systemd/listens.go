// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// dialTimeout bounds the dials of one check. A connection within the host takes far less.
	dialTimeout = time.Second
	// mostSockets bounds how much of the kernel's list is read, in bytes: about 100,000 sockets.
	mostSockets = 16 << 20
	stateListen = "0A"
)

// listens reports whether any process on this host listens on one of the addresses. It reads the kernel's list first,
// because a TLS server would log every connection that is closed right after it was opened. listens dials an address
// that is not on the list, because a container engine may forward it. listens returns an error if such an address
// neither accepts a connection nor refuses it.
func listens(ctx context.Context, addresses []string) (bool, error) {
	for _, list := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(list)
		if err != nil {
			continue // no IPv6, or no list: listens dials the addresses
		}
		found := listed(io.LimitReader(f, mostSockets), addresses)
		f.Close()
		if found {
			return true, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var unknown error
	for _, address := range addresses {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		switch {
		case err == nil:
			return true, conn.Close()
		case !errors.Is(err, syscall.ECONNREFUSED):
			unknown = err
		}
	}
	return false, unknown
}

// listed reports whether the kernel's list has a socket that listens on one of the addresses. If the host of an address
// is a name, any socket that listens on its port counts.
func listed(list io.Reader, addresses []string) bool {
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != stateListen {
			continue
		}
		at, ok := kernelAddress(fields[1])
		if !ok {
			continue
		}
		for _, address := range addresses {
			host, port, err := net.SplitHostPort(address)
			if err != nil || port != strconv.Itoa(int(at.Port())) {
				continue
			}
			ip, err := netip.ParseAddr(host)
			if err != nil || at.Addr().IsUnspecified() || at.Addr() == ip.Unmap().WithZone("") {
				return true
			}
		}
	}
	return false
}

// kernelAddress parses an address from the kernel's list of sockets: hexadecimal 32-bit words in the machine's byte
// order, a colon, and the port.
func kernelAddress(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	n, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}
