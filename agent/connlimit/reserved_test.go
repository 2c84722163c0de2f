// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"io"
	"net/netip"
	"testing"
)

// hasOpen waits until want connections are open.
func hasOpen(t *testing.T, g *Listener, want int) {
	t.Helper()
	until(t, "the connections are open", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.all == want
	})
}

func TestNetworkCannotUseTheConnectionsReservedForAnother(t *testing.T) {
	t.Parallel()
	limits := Limits{Total: 12, PerAddress: 12, Reserved: 3, Allow: []netip.Prefix{
		netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("127.0.1.0/24"),
	}}
	g, address := serving(t, limits, longTimes(), io.Discard)
	for range 3 * limits.Total {
		dial(t, "127.0.1.7", address)
	}
	hasOpen(t, g, 9)
	for range 3 {
		if err := scrape(t.Context(), "127.0.0.1", address); err != nil {
			t.Errorf("a scrape from the other network: %v", err)
		}
	}
	hasOpen(t, g, 9) // the connections of the scrapes are closed
	for range 3 {
		dial(t, "127.0.0.1", address)
	}
	hasOpen(t, g, limits.Total)
	if err := scrape(t.Context(), "127.0.1.8", address); err == nil {
		t.Error("a connection over the total limit is served")
	}
}

func TestAddressBelongsToItsSmallestNetwork(t *testing.T) {
	t.Parallel()
	wide, narrow := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("127.0.0.9/32")
	for _, allow := range [][]netip.Prefix{{wide, narrow}, {narrow, wide}} {
		g, address := serving(t, Limits{Total: 4, PerAddress: 4, Reserved: 1, Allow: allow}, longTimes(), io.Discard)
		for range 8 {
			dial(t, "127.0.0.5", address)
		}
		hasOpen(t, g, 3)
		if err := scrape(t.Context(), "127.0.0.9", address); err != nil {
			t.Errorf("a scrape from the narrow network: %v", err)
		}
	}
}

// TestThisHostCountsAsLoopbackThroughAllItsAddresses connects from an address to the same address, as a host that
// connects to its own address on a network does.
func TestThisHostCountsAsLoopbackThroughAllItsAddresses(t *testing.T) {
	t.Parallel()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	_, address := servingAt(t, "127.0.0.5:0", Limits{Total: 4, PerAddress: 4, Allow: loopback}, longTimes(), io.Discard)
	for from, want := range map[string]bool{"127.0.0.5": true, "127.0.0.1": true, "127.0.0.6": false} {
		if err := scrape(t.Context(), from, address); (err == nil) != want {
			t.Errorf("from %s: %v, want an answer: %t", from, err, want)
		}
	}
}
