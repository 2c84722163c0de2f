// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// requestOn requests a bootstrap on several hosts at the same moment. It repeats each request until the agent accepts
// or refuses it, and returns how many accepted.
func (w *world) requestOn(hosts ...*host) (accepted int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), bound)
	defer cancel()
	answers := make([]error, len(hosts))
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() {
			<-begin
			for again := time.Tick(pollEvery); ; <-again { // the agent has only just started
				_, err := h.Client.Bootstrap(ctx, clusterName)
				refusal, is := errors.AsType[*control.Error](err)
				answers[i] = err
				if err == nil || ctx.Err() != nil || is && refusal.Status == http.StatusConflict {
					return
				}
			}
		})
	}
	close(begin)
	all.Wait()
	for i, err := range answers {
		if err == nil {
			accepted++
		}
		w.t.Logf("%s answers the request with %v", hosts[i].Options.Name, err)
	}
	return accepted
}

// listedWorld makes a world of three hosts that list each other and bootstrap only on request.
func listedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: 3, voters: 3})
	w.listAllHosts()
	for _, h := range w.hosts {
		h.set("bootstrap.expect", "0")
	}
	return w
}

func TestTwoSimultaneousRequestsBootstrapOneCluster(t *testing.T) {
	t.Parallel()
	w := listedWorld(t)
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start(n1, n2)
	if accepted := w.requestOn(n2, n1); accepted == 0 {
		t.Fatal("no request was accepted")
	}
	w.eventually("n1 waits for n3", func() bool { return n1.reasonIs(policy.BootstrapWaiting, "n3 does not answer") })
	w.eventually("n2 ends its request", func() bool {
		return n2.reasonIs(policy.BootstrapWaiting, "bootstrap was requested on n1")
	})
	w.never(3*time.Second, "a cluster is bootstrapped", func() bool {
		return n1.etcdPID() != 0 || n2.etcdPID() != 0
	})
	w.start(n3)
	w.eventually("three voters", func() bool { return w.has(3, 0) })
	w.verify(3, 0)
}

func TestRequestsOnAllListedHostsBootstrapOneCluster(t *testing.T) {
	t.Parallel()
	w := listedWorld(t)
	w.start()
	if accepted := w.requestOn(w.hosts...); accepted == 0 {
		t.Fatal("no request was accepted")
	}
	w.eventually("three voters", func() bool { return w.has(3, 0) })
	w.verify(3, 0)
}
