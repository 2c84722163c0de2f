// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// The answers of chrony 4.3 of Debian 12: fifteen seconds after its source was lost, with only its own clock, and
// without a source.
const (
	chronyLost = "06020000002100050000000000000000af8b042b00000000000000007f0000017f000001000000000000000000000000" +
		"00010000000b0000000000006b05730b114b552fdd7d7afbcf71a324d8b9af89f4c46a5bed2a76fdfc83e1f4e0c3fdcf" +
		"e48905bc0482521f"
	chronyOwn = "06020000002100050000000000000000972367cf00000000000000007f7f010100000000000000000000000000000000" +
		"00000000000a0000000000006b0572fb05f36f1600000000000000000000000000000000000000000000000000000000" +
		"0000000000000000"
	chronyNone = "06020000002100050000000000000000ae528a4a00000000000000000000000000000000000000000000000000000000" +
		"000000000000000300000000000000000000000000000000000000000000000000000000000000000000000004800000" +
		"0480000000000000"
)

// recorded returns the bytes of an answer.
func recorded(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil || len(data) != trackingSize {
		t.Fatalf("%d bytes: %v", len(data), err)
	}
	return data
}

// answering returns the address of a server that sends this answer to every request, with the request's sequence
// number.
func answering(t *testing.T, answer []byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		request := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(request)
			if err != nil {
				return
			}
			said := append([]byte(nil), answer...)
			if n == trackingSize && len(said) >= 20 {
				copy(said[16:20], request[8:12])
			}
			_, _ = conn.WriteTo(said, from) // the client notices a missing answer
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}

func TestAnswersOfChronyAreParsed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0x6b05730b+100, 0)
	for text, want := range map[string]health.TimeSource{
		chronyLost: {Known: true, Synchronised: true, SinceUpdate: 100 * time.Second},
		chronyOwn:  {Known: true, Synchronised: true, Own: true, SinceUpdate: 116 * time.Second},
		chronyNone: {Known: true, SinceUpdate: now.Sub(time.Unix(0, 0))},
	} {
		if got := askChrony(answering(t, recorded(t, text)), now); got != want {
			t.Errorf("%.60s… is %+v, want %+v", text, got, want)
		}
	}
}

func TestAnInvalidAnswerOfChronyIsUnknown(t *testing.T) {
	t.Parallel()
	spoilt := func(at int, by byte) []byte {
		answer := recorded(t, chronyLost)
		answer[at] ^= by
		return answer
	}
	for what, answer := range map[string][]byte{
		"another version": spoilt(0, 1), "a request": spoilt(1, 3), "another command": spoilt(5, 1),
		"another answer": spoilt(7, 1), "an error": spoilt(9, 1), "short": recorded(t, chronyLost)[:100],
		"long": append(recorded(t, chronyLost), 0), "hardly anything": {0},
	} {
		if got := askChrony(answering(t, answer), time.Now()); got.Known || got.Absent != noValidReply.Error() {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := tracking(recorded(t, chronyLost), make([]byte, trackingSize), time.Now()); got.Known {
		t.Errorf("the answer to another request: %+v", got)
	}
}

func TestWithoutChronyTheTimeSourceIsUnknown(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	if got := askChrony(conn.LocalAddr().String(), began); got.Known || got.Absent != noChrony.Error() { // it is silent
		t.Errorf("%+v", got)
	}
	if got := time.Since(began); got < chronyTakes {
		t.Errorf("it waited for %v", got)
	}
	if got := askChrony("nowhere", began); got.Known || !strings.HasPrefix(got.Absent, "no chronyd responds on ") {
		t.Errorf("%+v", got)
	}
}

func FuzzTracking(f *testing.F) {
	for _, text := range []string{chronyLost, chronyOwn, chronyNone} {
		f.Add(recorded(f, text))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		request := make([]byte, trackingSize)
		if len(answer) >= 20 {
			copy(request[8:12], answer[16:20])
		}
		got := tracking(answer, request, time.Unix(0x6b05730b, 0))
		if got.SinceUpdate < 0 || got.Known == (got.Absent != "") {
			t.Errorf("%x is %+v", answer, got)
		}
	})
}
