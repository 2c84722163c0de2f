// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

// The request and the answer of version 6 of chrony's command protocol (candm.h), which has had no authentication since
// chrony 2.2. A request must be at least as long as its answer.
const (
	chronyAt      = "127.0.0.1:323" // only root may listen on this port
	chronyVersion = 6
	chronyRequest = 1
	chronyReply   = 2
	askTracking   = 33
	saysTracking  = 5
	trackingSize  = 104
	notInSync     = 3          // leap status of an unsynchronised clock
	ownReference  = 0x7f7f0101 // 127.127.1.1
	chronyTakes   = time.Second
)

const (
	noChrony     = absence("no chronyd responds on " + chronyAt)
	noValidReply = absence("unsupported reply from chronyd on " + chronyAt)
)

// Time asks chronyd for its time source, as 'chronyc tracking' does. It takes at most a second.
func (r *Reader) Time() health.TimeSource { return askChrony(chronyAt, time.Now()) }

func askChrony(address string, now time.Time) health.TimeSource {
	answer, request, err := exchange(address)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return health.TimeSource{Absent: "quorumd cannot reach chronyd: " + chronyAt + " is filtered"}
		}
		return health.TimeSource{Absent: noChrony.Error()}
	}
	return tracking(answer, request, now)
}

// exchange sends a tracking request, and returns the answer and the request.
func exchange(address string) (answer, request []byte, err error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	request = make([]byte, trackingSize)
	request[0], request[1], request[5] = chronyVersion, chronyRequest, askTracking
	_, _ = rand.Read(request[8:12]) // a random sequence number, which the answer must repeat; rand.Read never fails
	if err := conn.SetDeadline(time.Now().Add(chronyTakes)); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, nil, err
	}
	answer = make([]byte, 2*trackingSize)
	n, err := conn.Read(answer)
	return answer[:n], request, err
}

// tracking parses an answer.
func tracking(answer, request []byte, now time.Time) health.TimeSource {
	const number, status, reference, leap, when = 16, 8, 28, 54, 56
	if len(answer) != trackingSize || answer[0] != chronyVersion || answer[1] != chronyReply ||
		binary.BigEndian.Uint16(answer[4:]) != askTracking || binary.BigEndian.Uint16(answer[6:]) != saysTracking ||
		binary.BigEndian.Uint16(answer[status:]) != 0 || string(answer[number:number+4]) != string(request[8:12]) {
		return health.TimeSource{Absent: noValidReply.Error()}
	}
	high, low := binary.BigEndian.Uint32(answer[when:]), binary.BigEndian.Uint32(answer[when+4:])
	if high == 0x7fffffff { // an old format without the upper half of the seconds
		high = 0
	}
	id := binary.BigEndian.Uint32(answer[reference:])
	updated := now.Sub(time.Unix(int64(uint64(high)<<32|uint64(low)), 0)) //nolint:gosec // any number is a time
	return health.TimeSource{
		Known: true, Synchronised: binary.BigEndian.Uint16(answer[leap:]) != notInSync && id != 0,
		Own: id == ownReference, SinceUpdate: max(0, updated),
	}
}
