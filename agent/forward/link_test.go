// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// pair gives both ends of a connection.
func pair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)
	defer l.Close()
	here, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	must(t, err)
	there, err = l.AcceptTCP()
	must(t, err)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// TestWhoSaysThatItSendsNoMoreAndThenReadsNothingIsNotWaitedForLonger: the other way is full, and no read ends it.
func TestWhoSaysThatItSendsNoMoreAndThenReadsNothingIsNotWaitedForLonger(t *testing.T) {
	t.Parallel()
	loop, err := newLoop()
	must(t, err)
	client, clientFar := pair(t)
	voter, voterFar := pair(t)
	ended := make(chan struct{})
	k, err := newLink(loop, client, voter, func() { close(ended) })
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		if err := loop.run(); err != nil {
			t.Error(err)
		}
	})
	must(t, loop.add(k))
	must(t, clientFar.CloseWrite())
	all.Go(func() {
		for much := make([]byte, 1<<20); ; {
			if _, err := voterFar.Write(much); err != nil {
				return
			}
		}
	})
	full := func() bool {
		loop.mu.Lock()
		defer loop.mu.Unlock()
		if !k.client.full() || loop.halves[k].IsZero() {
			return false
		}
		if left := time.Until(loop.halves[k]); left > clientHalf || left < clientHalf/2 {
			t.Errorf("it has %v left, of %v", left, clientHalf)
		}
		loop.halves[k] = time.Now()
		return true
	}
	testbed.Eventually(t, bound, "the way to the client to be full", full)
	loop.overdue()
	select {
	case <-ended:
	case <-time.After(bound):
		t.Error("it is carried for whom reads nothing")
	}
	loop.close()
	voterFar.Close()
	all.Wait()
}

// TestTheEndThatComesWithTheLastBytesIsHandedOn: both are there before anybody looks, and are told of once.
func TestTheEndThatComesWithTheLastBytesIsHandedOn(t *testing.T) {
	t.Parallel()
	loop, err := newLoop()
	must(t, err)
	client, clientFar := pair(t)
	voter, voterFar := pair(t)
	k, err := newLink(loop, client, voter, func() {})
	must(t, err)
	_, err = clientFar.Write([]byte("the last"))
	must(t, errors.Join(err, clientFar.CloseWrite(), loop.add(k)))
	var all sync.WaitGroup
	all.Go(func() {
		if err := loop.run(); err != nil {
			t.Error(err)
		}
	})
	must(t, voterFar.SetReadDeadline(time.Now().Add(bound)))
	if got, err := io.ReadAll(voterFar); err != nil || string(got) != "the last" {
		t.Errorf("%q came, and %v", got, err)
	}
	loop.close()
	all.Wait()
}

// TestWhoSaysLittleHasItsTurnBesideWhoSaysMuch has one connection on which the bytes never end.
func TestWhoSaysLittleHasItsTurnBesideWhoSaysMuch(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static = []string{a.Addr().String()} })
	much, _ := f.client(t)
	little, _ := f.client(t)
	var all sync.WaitGroup
	all.Go(func() {
		for piece := make([]byte, 1<<20); ; {
			if _, err := much.Write(piece); err != nil {
				return
			}
		}
	})
	all.Go(func() { _, _ = io.Copy(io.Discard, much) })
	for range 100 {
		if !echoes(little) {
			t.Fatal("it is not carried")
		}
	}
	much.Close()
	all.Wait()
}

// TestAnIdleVoterIsAskedThreeTimesWithinTheBoundOfSilence: Linux ends a connection with the first question after the
// bound, however few there were.
func TestAnIdleVoterIsAskedThreeTimesWithinTheBoundOfSilence(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := New(Options{Static: []string{a.Addr().String()}, Elapsed: since(), Logger: slog.New(slog.DiscardHandler)})
	_, conn, err := f.connect(t.Context())
	must(t, err)
	defer conn.Close()
	raw, err := conn.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		option := func(name int, unit time.Duration) time.Duration {
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name)
			must(t, err)
			return time.Duration(n) * unit
		}
		ends := option(unix.TCP_USER_TIMEOUT, time.Millisecond)
		idle, interval := option(unix.TCP_KEEPIDLE, time.Second), option(unix.TCP_KEEPINTVL, time.Second)
		asked := 0
		for at := idle; at < ends; at += interval {
			asked++
		}
		if ends != silenceBound || asked != 3 || (ends-idle)%interval != 0 {
			t.Errorf("after %v each %v, until %v: %d times", idle, interval, ends, asked)
		}
	}))
}

//nolint:paralleltest // meanwhile nobody gets a file
func TestAVoterThatWasNotAskedForWantOfFilesIsNotPassedOver(t *testing.T) {
	a := serve(t, "n1")
	f := New(Options{Static: []string{a.Addr().String()}, Elapsed: since(), Logger: slog.New(slog.DiscardHandler)})
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	_, _, err := f.connect(t.Context())
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if err == nil {
		t.Fatal("there were files")
	}
	if p := f.table.places[0]; p.failures != 0 || p.avoid != 0 {
		t.Errorf("%v counts against it: %d, until %v", err, p.failures, p.avoid)
	}
}
