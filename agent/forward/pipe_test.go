// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/sha256"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// carrying is a loop with links of which both far ends are at hand.
type carrying struct {
	*loop
	t   *testing.T
	all sync.WaitGroup
}

func carry(t *testing.T) *carrying {
	t.Helper()
	l, err := newLoop()
	must(t, err)
	c := &carrying{loop: l, t: t}
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

func (c *carrying) link() (client, voter *net.TCPConn) {
	c.t.Helper()
	near, client := pair(c.t)
	far, voter := pair(c.t)
	k, err := newLink(c.loop, near, far, func() {})
	must(c.t, err)
	must(c.t, c.add(k))
	return client, voter
}

// piped counts the pipes that there are, and those in which something waits.
func (c *carrying) piped() (pipes, wait int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ends {
		if e.piped != nil {
			wait++
		}
	}
	return c.pipes, wait
}

// TestWhatIsMuchArrivesWholeAndInOrderHoweverManyDoNotTakeTheirs: some wait in pipes, the others in buffers, and when
// they are read at last, it was all there.
func TestWhatIsMuchArrivesWholeAndInOrderHoweverManyDoNotTakeTheirs(t *testing.T) {
	t.Parallel()
	c := carry(t)
	const size, links = 24 << 20, 2 * mostPipes
	sums := make([]hash.Hash, links)
	var voters []*net.TCPConn
	var sent sync.WaitGroup
	for i := range links {
		client, voter := c.link()
		voters, sums[i] = append(voters, voter), sha256.New()
		sent.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(i)})
			_, err := io.CopyN(io.MultiWriter(client, sums[i]), random, size)
			if err == nil {
				err = client.CloseWrite()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	testbed.Eventually(t, bound, "all pipes to be full", func() bool {
		_, wait := c.piped()
		return wait == mostPipes
	})
	got := make([]hash.Hash, links)
	for i, voter := range voters {
		got[i] = sha256.New()
		sent.Go(func() {
			if n, err := io.Copy(got[i], voter); err != nil || n != size {
				t.Errorf("%d bytes came: %v", n, err)
			}
		})
	}
	sent.Wait()
	for i := range links {
		if string(got[i].Sum(nil)) != string(sums[i].Sum(nil)) {
			t.Errorf("what came by link %d is not what was sent", i)
		}
	}
	if pipes, wait := c.piped(); wait != 0 || pipes > 1 {
		t.Errorf("%d pipes are kept, and in %d something waits", pipes, wait)
	}
}

// TestAPipeInWhichSomethingIsLeftCarriesForNobodyElse: a link ends while its voter takes nothing.
func TestAPipeInWhichSomethingIsLeftCarriesForNobodyElse(t *testing.T) {
	t.Parallel()
	c := carry(t)
	client, voter := c.link()
	c.all.Go(func() { _, _ = io.CopyN(client, rand.NewChaCha8([32]byte{1}), 64<<20) }) // until it is reset
	testbed.Eventually(t, bound, "a pipe to be full", func() bool { _, wait := c.piped(); return wait == 1 })
	must(t, voter.SetLinger(0))
	must(t, voter.Close())
	testbed.Eventually(t, bound, "the pipe to be gone", func() bool { pipes, _ := c.piped(); return pipes == 0 })

	client, voter = c.link()
	const size = 1 << 20
	c.all.Go(func() {
		_, err := client.Write(make([]byte, size))
		if err != nil {
			t.Error(err)
		}
		_ = client.CloseWrite()
	})
	must(t, voter.SetReadDeadline(time.Now().Add(bound)))
	all, err := io.ReadAll(voter)
	must(t, err)
	for _, b := range all {
		if b != 0 {
			t.Fatal("it has what was another's")
		}
	}
	if len(all) != size {
		t.Errorf("%d bytes came", len(all))
	}
}
