// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	// proxyHosts is the number of hosts without a voter, each with its own proxy. On some machines a single process
	// cannot have 10,000 open connections.
	proxyHosts = 2
	busyLinks  = 1000
	quietLinks = 10_000
	killEvery  = 10 * time.Second
	kills      = 4
)

// TestOnlyConnectionsToAKilledVoterBreak has real etcds behind the proxies, and clients with persistent connections.
// The busy clients send a request every second.
func TestOnlyConnectionsToAKilledVoterBreak(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 3, testbed.ClusterOptions{})
	var list proxy.List
	for _, m := range c.Members {
		list.Voters = append(list.Voters, proxy.Voter{
			Name: m.Options.Name, Address: strings.TrimPrefix(m.Options.ClientURL, "http://"), Use: true,
		})
	}
	var proxies []string
	for range proxyHosts {
		proxies = append(proxies, startProxy(t, list, c.Endpoints()))
	}
	clients := make([]*proxyClient, busyLinks+quietLinks)
	t.Cleanup(func() {
		for _, p := range clients {
			if p != nil {
				p.close()
			}
		}
	})
	connectAll(t, clients, proxies, func(i int) bool { return true })
	reopened := 0
	for round := range kills {
		victim := c.Members[round%len(c.Members)]
		id := memberID(t, address(victim.Options.ClientURL))
		<-time.After(killEvery)
		must(t, victim.Kill9())
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		_ = victim.Wait(ctx) // it was killed
		cancel()
		mine, broken := 0, 0
		for _, p := range clients {
			if p.member != id {
				continue
			}
			mine++
			testbed.Eventually(t, bound, "the connections to the killed voter break", p.isBroken)
		}
		for i, p := range clients {
			if p.member != id && (p.isBroken() || !p.busy && !p.exchange()) {
				broken++
				t.Errorf("client %d has lost its connection to %s when another was killed: %v", i, p.member, p.err())
			}
		}
		connectAll(t, clients, proxies, func(i int) bool { return clients[i].member == id }) // clients reconnect
		for i, p := range clients {
			if p.member == id {
				t.Errorf("client %d is at the voter that was killed", i)
			}
		}
		reopened += mine
		t.Logf("%s killed: %d connections to it broke, %d others did", victim.Options.Name, mine, broken)
		if mine < (busyLinks+quietLinks)/10 {
			t.Errorf("only %d connections went to %s: this proves nothing", mine, victim.Options.Name)
		}
		must(t, victim.Restart(context.WithoutCancel(t.Context())))
		ctx, cancel = context.WithTimeout(t.Context(), bound)
		must(t, victim.WaitReady(ctx))
		cancel()
	}
	answers := int64(0)
	for _, p := range clients {
		answers += p.answers.Load()
	}
	t.Logf("%d connections reopened, %d answers over those that stayed", reopened, answers)
}

// connectAll connects the selected clients, many at a time.
func connectAll(t *testing.T, clients []*proxyClient, proxies []string, which func(i int) bool) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for i := range clients {
		if !which(i) {
			continue
		}
		group.Go(func() error {
			if clients[i] != nil {
				clients[i].close()
			}
			p, err := connectThrough(proxies[i%len(proxies)], i < busyLinks)
			if err == nil {
				clients[i] = p
			}
			return err
		})
	}
	must(t, group.Wait())
}
