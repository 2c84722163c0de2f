// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

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

// pair returns both ends of a connection.
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

// TestHalfClosedClientThatDoesNotReadIsClosedAfterTheBound fills the buffers towards the client. The loop then reads
// nothing from the voter, so that only the time limit can end the link.
func TestHalfClosedClientThatDoesNotReadIsClosedAfterTheBound(t *testing.T) {
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
		if !k.client.full() || loop.halfClosed[k].IsZero() {
			return false
		}
		if left := time.Until(loop.halfClosed[k]); left > clientHalf || left < clientHalf/2 {
			t.Errorf("the link is closed in %v, want about %v", left, clientHalf)
		}
		loop.halfClosed[k] = time.Now()
		return true
	}
	testbed.Eventually(t, bound, "the client's buffers to be full", full)
	loop.resetOverdue()
	select {
	case <-ended:
	case <-time.After(bound):
		t.Error("the link is still open")
	}
	loop.close()
	voterFar.Close()
	all.Wait()
}

// TestCloseThatArrivesWithTheLastBytesIsPassedOn covers an event that reports both data and the close.
func TestCloseThatArrivesWithTheLastBytesIsPassedOn(t *testing.T) {
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
		t.Errorf("the voter received %q: %v", got, err)
	}
	loop.close()
	all.Wait()
}

// endless returns a link whose client always has data and whose voter accepts all of it. Both are files in memory, so
// that an iteration depends on no other process.
func endless(t *testing.T, bytes int64) *link {
	t.Helper()
	memory := func(size int64) int {
		fd, err := unix.MemfdCreate(t.Name(), unix.MFD_CLOEXEC)
		must(t, err)
		must(t, unix.Ftruncate(fd, size))
		return fd
	}
	k := &link{ended: func() {}}
	k.client = end{link: k, other: &k.voter, fd: memory(bytes), ready: true}
	k.voter = end{link: k, other: &k.client, fd: memory(0)}
	return k
}

func copied(t *testing.T, k *link) int {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Fstat(k.voter.fd, &s))
	return int(s.Size)
}

// TestCopyStopsAfterTheBytesOfOneIteration uses both pipes and buffers, because a pipe moves larger pieces.
func TestCopyStopsAfterTheBytesOfOneIteration(t *testing.T) {
	t.Parallel()
	for name, pipeless := range map[string]bool{"pipe": false, "buffer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := newLoop()
			must(t, err)
			l.pipeless = pipeless
			k := endless(t, 8*iterationBytes)
			for i := 1; i <= 4; i++ {
				must(t, l.copyFrom(&k.client))
				if n := copied(t, k); n != i*iterationBytes || len(l.unfinished) != 1 || k.client.bulk == pipeless {
					t.Errorf(
						"%d bytes after iteration %d, want %d; %d have more", n, i, i*iterationBytes, len(l.unfinished),
					)
				}
			}
			l.endLink(k)
			l.close()
			must(t, l.run())
		})
	}
}

// TestQuietLinkIsServedAmongBusyOnes uses many links with endless data, and one with a single message.
func TestQuietLinkIsServedAmongBusyOnes(t *testing.T) {
	t.Parallel()
	l, err := newLoop()
	must(t, err)
	const links = batch + batch/8
	var much []*link
	for range links {
		k := endless(t, 2*iterationBytes)
		k.client.queued = true
		much, l.unfinished = append(much, k), append(l.unfinished, &k.client)
	}
	client, clientFar := pair(t)
	voter, voterFar := pair(t)
	little, err := newLink(l, client, voter, func() {})
	must(t, err)
	must(t, l.add(little))
	_, err = io.WriteString(clientFar, "ping")
	must(t, err)
	busy, _ := l.iterate([]unix.EpollEvent{
		{Events: unix.EPOLLIN, Fd: int32(little.client.fd), Pad: little.client.serial},
	})
	must(t, voterFar.SetReadDeadline(time.Now().Add(bound)))
	got := make([]byte, 4)
	if _, err := io.ReadFull(voterFar, got); err != nil || string(got) != "ping" {
		t.Errorf("after one iteration, %q has arrived: %v", got, err)
	}
	all := 0
	for _, k := range much {
		all += copied(t, k)
	}
	if all > batch*iterationBytes || !busy || len(l.unfinished) != links {
		t.Errorf("the busy links copied %d bytes, want at most %d; %d of %d have more", all, batch*iterationBytes,
			len(l.unfinished), links)
	}
	for _, k := range much {
		l.endLink(k)
	}
	l.close()
	must(t, l.run())
}

// TestQuietClientIsServedWhileAnotherNeverPauses is TestQuietLinkIsServedAmongBusyOnes with real connections and a
// running loop.
func TestQuietClientIsServedWhileAnotherNeverPauses(t *testing.T) {
	t.Parallel()
	a := serve(t, "n1")
	f := run(t, func(o *Options) { o.Static = []string{a.Addr().String()} })
	much, _ := f.client(t)
	must(t, much.SetDeadline(time.Time{}))
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
	for range 20 {
		// A deadline per message, because the total time depends on the load of the machine.
		must(t, little.SetDeadline(time.Now().Add(bound)))
		if !echoes(little) {
			t.Error("the message does not arrive")
			break
		}
	}
	much.Close()
	all.Wait()
}

// TestIdleVoterIsProbedThreeTimesWithinTheBound checks the settings of the probes, because Linux closes a connection at
// the first probe after the bound, regardless of the number of earlier probes.
func TestIdleVoterIsProbedThreeTimesWithinTheBound(t *testing.T) {
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
		probes := 0
		for at := idle; at < ends; at += interval {
			probes++
		}
		if ends != silenceBound || probes != 3 || (ends-idle)%interval != 0 {
			t.Errorf("%d probes from %v, every %v until %v", probes, idle, interval, ends)
		}
	}))
}

//nolint:paralleltest // no goroutine of the process can open a file meanwhile
func TestVoterIsNotAvoidedIfThisHostRanOutOfDescriptors(t *testing.T) {
	a := serve(t, "n1")
	f := New(Options{Static: []string{a.Addr().String()}, Elapsed: since(), Logger: slog.New(slog.DiscardHandler)})
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
	_, _, err := f.connect(t.Context())
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if err == nil {
		t.Fatal("connected without a free descriptor")
	}
	if p := f.table.upstreams[0]; p.failures != 0 || p.avoidUntil != 0 {
		t.Errorf("%v counts as the voter's failure: %d, avoided until %v", err, p.failures, p.avoidUntil)
	}
}
