// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// held is an address with the name of its interface.
type held struct {
	address netip.Addr
	by      string
}

// holder returns the interface that has one of these addresses. It needs no netlink socket.
func (r *Reader) holder(wanted []netip.Addr) (string, error) {
	all, err := r.ipv4()
	if err != nil {
		return "", absence("cannot read the addresses of this host: " + err.Error())
	}
	for _, h := range append(all, r.ipv6()...) {
		if slices.Contains(wanted, h.address) {
			name, _, _ := strings.Cut(h.by, ":") // remove the label of an alias, such as eth0:1
			return name, nil
		}
	}
	return "", noHolder
}

// ipv6 reads the kernel's list of IPv6 addresses; a host without IPv6 has no such file.
func (r *Reader) ipv6() (all []held) {
	text, err := read(filepath.Join(r.proc, "net/if_inet6"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 6 {
			continue
		}
		raw, err := hex.DecodeString(fields[0])
		if a, ok := netip.AddrFromSlice(raw); ok && err == nil {
			all = append(all, held{a, fields[5]})
		}
	}
	return all
}

// interfaceRequest is struct ifreq of netdevice(7): 40 bytes on every 64-bit machine.
type interfaceRequest struct {
	name    [unix.IFNAMSIZ]byte
	address [24]byte
}

// ipv4 asks the kernel for the IPv4 addresses of all interfaces, including secondary addresses.
func ipv4() (all []held, err error) {
	const most = 1024
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written to it
	found := make([]interfaceRequest, most)
	ask := struct {
		bytes int32
		_     int32
		to    *interfaceRequest
	}{bytes: int32(most * unsafe.Sizeof(found[0])), to: &found[0]}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCGIFCONF,
		uintptr(unsafe.Pointer(&ask))); errno != 0 { //nolint:gosec // the kernel writes at most that size
		return nil, errno
	}
	n := min(most, max(0, int(ask.bytes)/int(unsafe.Sizeof(found[0]))))
	for _, f := range found[:n] {
		name, _, _ := bytes.Cut(f.name[:], []byte{0})
		if binary.NativeEndian.Uint16(f.address[:]) == unix.AF_INET {
			all = append(all, held{netip.AddrFrom4([4]byte(f.address[4:8])), string(name)})
		}
	}
	return all, nil
}
