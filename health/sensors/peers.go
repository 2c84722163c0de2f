// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	mostConnections = 256
	mostAnswers     = 64 // maximum number of reads per request
	answerSize      = 32 << 10

	noDiag = absence("cannot query TCP connections (sock_diag): the kernel module is missing, or " +
		"quorumd's unit does not allow netlink")
	tooMany  = absence("etcd's peer port has too many connections")
	noAnswer = absence("the query of TCP connections timed out (sock_diag)")
	garbled  = absence("the kernel returned invalid data on TCP connections (sock_diag)")

	diagInfo   = 2  // INET_DIAG_INFO
	diagHeader = 16 // struct nlmsghdr
	diagEnds   = 48 // struct inet_diag_sockid
	diagWhole  = diagHeader + 4 + diagEnds + 20
)

// Peers returns the host's TCP connections with the given local port, on which an etcd sends to its peers. The kernel
// selects them, so the host's other connections cost nothing.
func (r *Reader) Peers(port uint16) health.PeersReading {
	var all []health.PeerConnection
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		some, err := connectionsTo(family, port)
		if err != nil {
			return health.PeersReading{Absent: err.Error()}
		}
		all = append(all, some...)
	}
	if len(all) > mostConnections {
		return health.PeersReading{Absent: tooMany.Error()}
	}
	return health.PeersReading{At: r.now(), Known: true, All: all}
}

// connectionsTo asks the kernel for the connections of one address family, and waits at most a second for each part of
// the answer.
func connectionsTo(family uint8, port uint16) ([]health.PeerConnection, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, noDiag
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written to it that could be lost
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, noDiag
	}
	if err := unix.Sendto(socket, diagQuestion(family, port), 0, kernel); err != nil {
		return nil, noDiag
	}
	var all []health.PeerConnection
	buffer := make([]byte, answerSize)
	for range mostAnswers {
		n, from, err := unix.Recvfrom(socket, buffer, 0)
		if err != nil {
			return nil, noAnswer
		}
		if sender, is := from.(*unix.SockaddrNetlink); !is || sender.Pid != 0 {
			continue // ignore messages that the kernel has not sent
		}
		some, last, err := parseAnswer(buffer[:n])
		if all = append(all, some...); err != nil || last {
			return all, err
		}
		if len(all) > mostConnections {
			break
		}
	}
	return nil, tooMany
}

// diagQuestion returns a request for the established TCP connections with this local port, with their TCP information.
func diagQuestion(family uint8, port uint16) []byte {
	const established = 1 // the TCP state TCP_ESTABLISHED
	q := make([]byte, 0, diagHeader+8+diagEnds)
	q = binary.NativeEndian.AppendUint32(q, uint32(cap(q)))
	q = binary.NativeEndian.AppendUint16(q, unix.SOCK_DIAG_BY_FAMILY)
	q = binary.NativeEndian.AppendUint16(q, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	q = append(q, 0, 0, 0, 0, 0, 0, 0, 0) // sequence number and sender are 0, because this is the only request
	q = append(q, family, unix.IPPROTO_TCP, 1<<(diagInfo-1), 0)
	q = binary.NativeEndian.AppendUint32(q, 1<<established)
	q = binary.BigEndian.AppendUint16(q, port)
	return q[:cap(q)] // the remaining fields are zero: any remote end
}

// parseAnswer parses one part of the kernel's answer. last means that no other part follows.
func parseAnswer(answer []byte) (all []health.PeerConnection, last bool, err error) {
	for len(answer) > 0 {
		if len(answer) < diagHeader {
			return nil, false, garbled
		}
		size := binary.NativeEndian.Uint32(answer)
		if size < diagHeader || uint64(size) > uint64(len(answer)) {
			return nil, false, garbled
		}
		switch binary.NativeEndian.Uint16(answer[4:]) {
		case unix.NLMSG_DONE:
			return all, true, nil
		case unix.NLMSG_ERROR:
			return nil, false, noDiag
		case unix.SOCK_DIAG_BY_FAMILY:
			c, ok := connection(answer[:size])
			if !ok {
				return nil, false, garbled
			}
			all = append(all, c)
		}
		answer = answer[min(len(answer), int(aligned(size))):]
	}
	return all, false, nil
}

// aligned returns the offset of the next message or attribute.
func aligned(size uint32) uint32 { return (size + 3) &^ 3 }

// connection parses struct inet_diag_msg and its attributes. Without TCP information, the segments are unknown.
func connection(m []byte) (c health.PeerConnection, ok bool) {
	if len(m) < diagWhole {
		return c, false
	}
	ends := m[diagHeader+4:]
	raw := ends[20:36]
	if m[diagHeader] == unix.AF_INET {
		raw = raw[:4]
	}
	to, _ := netip.AddrFromSlice(raw)
	c.To, c.Cookie = to.Unmap().String(), binary.NativeEndian.Uint64(ends[40:])
	c.Segments.Absent = "the kernel does not report TCP_INFO"
	for rest := m[diagWhole:]; len(rest) >= 4; {
		size := binary.NativeEndian.Uint16(rest)
		if size < 4 || int(size) > len(rest) {
			return c, false
		}
		if binary.NativeEndian.Uint16(rest[2:]) == diagInfo {
			c.Segments = sent(rest[4:size])
		}
		rest = rest[min(len(rest), int(aligned(uint32(size)))):]
	}
	return c, true
}

// sent reads from struct tcp_info how many segments with data were sent, and how many of them were retransmitted.
// Kernels before 4.6 do not report the number of sent segments.
func sent(info []byte) health.Part {
	const again, all = unsafe.Offsetof(unix.TCPInfo{}.Total_retrans), unsafe.Offsetof(unix.TCPInfo{}.Data_segs_out)
	if uintptr(len(info)) < all+4 {
		return health.Part{Absent: "the kernel does not report sent segments"}
	}
	return health.Part{
		Of: float64(binary.NativeEndian.Uint32(info[again:])), Among: float64(binary.NativeEndian.Uint32(info[all:])),
		Known: true,
	}
}
