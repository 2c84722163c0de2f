// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// bootstrapOrders is how many orders of events the test tries, with three hosts and with five.
const bootstrapOrders = 50

func TestListedHostsBootstrapOneClusterInEveryOrderOfBootsCutsAndPowerLosses(t *testing.T) {
	t.Parallel()
	for seed := range bootstrapOrders {
		for _, n := range []int{3, 5} {
			t.Run(fmt.Sprintf("seed %d, %d hosts", seed, n), func(t *testing.T) {
				t.Parallel()
				bootstrapInOrder(t, uint64(seed), n)
			})
		}
	}
}

// bootstrapInOrder makes listed hosts boot, lose power and be cut off from each other, in an order derived from the
// seed. It checks that they form one cluster when all faults are over.
func bootstrapInOrder(t *testing.T, seed uint64, hosts int) {
	w := newWorld(t, worldOptions{hosts: hosts, voters: hosts})
	var list []string
	var asked []*testbed.Proxy // the proxies through which other hosts query each host
	for _, h := range w.hosts {
		listen := "127.0.0.1:" + freePort(t)
		h.set("bootstrap.listen", listen)
		p := testbed.NewProxy(t, listen)
		asked, list = append(asked, p), append(list, h.Options.Name+"=http://"+p.Addr())
	}
	for _, h := range w.hosts {
		h.set("bootstrap.expect", fmt.Sprint(hosts))
		h.set("bootstrap.hosts", "["+strings.Join(list, ", ")+"]")
	}
	random := rand.New(rand.NewPCG(seed, uint64(hosts)))
	w.start(w.hosts[random.IntN(hosts)])
	for range 4 * hosts {
		i := random.IntN(hosts)
		h := w.hosts[i]
		switch what := random.IntN(4); {
		case what == 0:
			asked[i].Set(testbed.Faults{Refuse: random.IntN(2) == 0, HoldResponses: random.IntN(3) == 0})
		case what == 1 && h.running:
			h.kill()
			if random.IntN(2) == 0 {
				h.killEtcdIfRunning()
			}
		case !h.running:
			w.start(h)
		}
		<-time.After(time.Duration(random.IntN(700)) * time.Millisecond)
	}
	for i, h := range w.hosts {
		asked[i].Set(testbed.Faults{})
		if !h.running {
			w.start(h)
		}
	}
	w.within(2*formation, "all are voters", func() bool { return w.has(hosts, 0) })
	w.verify(hosts, 0)
	clusters := map[uint64]bool{}
	for _, h := range w.hosts {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		members, err := h.etcd.MemberList(ctx)
		cancel()
		must(t, err)
		clusters[members.Header.ClusterId] = true
	}
	if len(clusters) != 1 {
		t.Errorf("there are %d clusters", len(clusters))
	}
}
