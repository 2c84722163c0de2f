// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"testing"
	"time"
)

// sends lets etcd send on some connections, as TCP reports them.
func (b *bench) sends(all ...PeerConnection) {
	b.links.Peers = PeersReading{At: b.now, Known: true, All: all}
}

// to returns a connection to a host with this many sent and retransmitted segments.
func to(cookie uint64, again, sent float64) PeerConnection {
	return PeerConnection{
		To: "192.0.2.2", Cookie: cookie, Segments: Part{Of: again, Among: sent, Known: true},
	}
}

func TestRetransmissionsToAPeerAreFoundInMinutes(t *testing.T) {
	t.Parallel()
	b := linked(t)
	const before = 1e6 // ignored
	for i := range 120 {
		sent := 10 * float64(i)
		b.sends(to(1, before+0.05*sent, before+sent), to(2, 0, 5)) // little traffic on the second connection
		b.each(time.Second, ms)
		if i == 50 && len(b.result.Findings) > 0 {
			t.Errorf("found after 500 segments: %+v", b.result.Findings)
		}
	}
	b.findsOnly(NetworkLossy, "5 % of 1190 segments that etcd sent to 192.0.2.2 were retransmitted in the last five "+
		"minutes, limit 3 %")
}

func TestNewConnectionCountsFromItsStartAndAnEndedOneDoesNotShrinkTheCount(t *testing.T) {
	t.Parallel()
	e := peerLosses{limit: Limit{Enter: 3, Leave: 1.5}}
	look := func(at time.Duration, all ...PeerConnection) []string {
		return e.look(PeersReading{At: at, Known: true, All: all}, false)
	}
	look(0, to(1, 40, 1000))
	if found := look(time.Minute, to(2, 10, 600)); len(found) > 0 { // connection 1 has ended
		t.Errorf("1.7 %% retransmitted: %q", found)
	}
	found := look(2*time.Minute, to(2, 30, 800), to(3, 0, 100))
	if len(found) != 1 || found[0] != "3.3 % of 900 segments that etcd sent to 192.0.2.2 were retransmitted in the "+
		"last five minutes, limit 3 %" {
		t.Errorf("30 of 900: %q", found)
	}
	if found := e.look(PeersReading{Absent: "netlink is not allowed"}, true); len(found) > 0 {
		t.Errorf("without a reading: %q", found)
	}
	if found := look(3*time.Minute, to(3, 400, 800)); len(found) > 0 {
		t.Errorf("sent between readings: %q", found)
	}
}

func TestUnknownConnectionsOfEtcdAreReportedAsNotAvailable(t *testing.T) {
	t.Parallel()
	b := linked(t)
	b.links.Peers = PeersReading{Absent: "netlink is not allowed"}
	b.each(time.Second, ms)
	want := []Absence{{"loss", Network, "etcd's own connections: netlink is not allowed"}}
	if !slices.Equal(b.result.NotAvailable, want) {
		t.Errorf("not available: %+v, want %+v", b.result.NotAvailable, want)
	}
	b.sends(to(1, 0, 5))
	b.each(time.Second, ms)
	if len(b.result.NotAvailable) > 0 {
		t.Errorf("not available although known: %+v", b.result.NotAvailable)
	}
	b.finds()
}
