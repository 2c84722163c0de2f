// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// runningLoop is a loop that runs until the test ends.
type runningLoop struct {
	*loop
	t   *testing.T
	all sync.WaitGroup
}

func runLoop(t *testing.T) *runningLoop {
	t.Helper()
	l, err := newLoop()
	must(t, err)
	c := &runningLoop{loop: l, t: t}
	c.all.Go(func() {
		if err := l.run(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		l.close()
		c.all.Wait()
	})
	return c
}

// link adds a link whose client has already sent more than the voter's buffers hold, and returns the far ends of both
// connections. It calls send in a goroutine.
func (c *runningLoop) link(send func(client *net.TCPConn)) (client, voter *net.TCPConn) {
	c.t.Helper()
	near, client := pair(c.t)
	far, voter := pair(c.t)
	must(c.t, errors.Join(near.SetReadBuffer(1<<20), far.SetWriteBuffer(16<<10), voter.SetReadBuffer(32<<10)))
	c.all.Go(func() { send(client) })
	raw, err := near.SyscallConn()
	must(c.t, err)
	testbed.Eventually(c.t, bound, "enough data to arrive", func() bool {
		var there int
		err := raw.Control(func(fd uintptr) { there, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return err == nil && there >= 5*chunk
	})
	k, err := newLink(c.loop, near, far, func() {})
	must(c.t, err)
	k.client.bulk = true // as after a read of a full chunk
	must(c.t, c.add(k))
	return client, voter
}

// piped returns how many pipes exist, and how many hold data.
func (c *runningLoop) piped() (pipes, wait int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ends {
		if e.pipe != nil {
			wait++
		}
	}
	return c.pipes, wait
}

// TestLargeTransfersArriveWholeAndInOrderAmongManySlowReaders keeps some data waiting in pipes and the rest in buffers.
// All of it must arrive once the voters begin to read.
func TestLargeTransfersArriveWholeAndInOrderAmongManySlowReaders(t *testing.T) {
	t.Parallel()
	c := runLoop(t)
	const size, links = 2 << 20, 2 * maxPipes
	sums := make([]hash.Hash, links)
	var voters []*net.TCPConn
	var sent sync.WaitGroup
	for i := range links {
		sums[i] = sha256.New()
		sent.Add(1)
		_, voter := c.link(func(client *net.TCPConn) {
			defer sent.Done()
			random := rand.NewChaCha8([32]byte{byte(i)})
			_, err := io.CopyN(io.MultiWriter(client, sums[i]), random, size)
			if err == nil {
				err = client.CloseWrite()
			}
			if err != nil {
				t.Error(err)
			}
		})
		voters = append(voters, voter)
	}
	testbed.Eventually(t, bound, "all pipes to be full", func() bool {
		_, wait := c.piped()
		return wait == maxPipes
	})
	got, read := make([]hash.Hash, links), sync.WaitGroup{}
	for i, voter := range voters {
		got[i] = sha256.New()
		read.Go(func() {
			if n, err := io.Copy(got[i], voter); err != nil || n != size {
				t.Errorf("%d bytes arrived: %v", n, err)
			}
		})
	}
	read.Wait()
	sent.Wait() // the last bytes may arrive before their sender has added them to its sum
	for i := range links {
		if string(got[i].Sum(nil)) != string(sums[i].Sum(nil)) {
			t.Errorf("link %d delivered different data", i)
		}
	}
	if pipes, wait := c.piped(); wait != 0 || pipes > 1 {
		t.Errorf("%d pipes are left, %d of them with data", pipes, wait)
	}
}

// TestPipeWithDataLeftIsNotReused ends a link while its voter accepts no data.
func TestPipeWithDataLeftIsNotReused(t *testing.T) {
	t.Parallel()
	c := runLoop(t)
	_, voter := c.link(func(client *net.TCPConn) {
		_, _ = io.CopyN(client, rand.NewChaCha8([32]byte{1}), 64<<20) // fails when the connection is reset
	})
	testbed.Eventually(t, bound, "a pipe to be full", func() bool { _, wait := c.piped(); return wait == 1 })
	must(t, voter.SetLinger(0))
	must(t, voter.Close())
	testbed.Eventually(t, bound, "the pipe to be gone", func() bool { pipes, _ := c.piped(); return pipes == 0 })

	const size = 1 << 20
	_, voter = c.link(func(client *net.TCPConn) {
		if _, err := client.Write(make([]byte, size)); err != nil {
			t.Error(err)
		}
		_ = client.CloseWrite() // the voter then reads EOF
	})
	must(t, voter.SetReadDeadline(time.Now().Add(bound)))
	all, err := io.ReadAll(voter)
	must(t, err)
	for _, b := range all {
		if b != 0 {
			t.Fatal("the voter received data of another link")
		}
	}
	if len(all) != size {
		t.Errorf("%d bytes arrived", len(all))
	}
}
