// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// deadFleetGrace is the grace period of a dead voter in these tests.
const deadFleetGrace = 10 * time.Minute

// fleetNetwork simulates a host's probes of the members. No host reaches a silent member.
type fleetNetwork struct {
	h *fleetHost

	mu      sync.Mutex
	members []network.Member
	lostAt  map[uint64]time.Duration
}

func (n *fleetNetwork) Watch(members []network.Member, _ time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members = members
}

func (n *fleetNetwork) ProbeNow(uint64, time.Duration) {} // its probes are always current

func (n *fleetNetwork) Readings() (all []network.Reading) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.h.f.now()
	for _, m := range n.members {
		s := network.Reading{Member: m.ID, Name: m.Name, LookedAt: now}
		s.Peer = network.Port{State: record.PortAnswers, RTT: time.Millisecond}
		if n.h.f.etcd.isSilent(m.ID) {
			if n.lostAt[m.ID] == 0 {
				n.lostAt[m.ID] = now
			}
			s.Peer.State, s.Lost, s.LostAt = record.PortUnreachable, true, n.lostAt[m.ID]
		}
		s.Client = s.Peer
		all = append(all, s)
	}
	return all
}

func (e *fleetEtcd) isSilent(id uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.silent[id]
}

// peers returns a host's etcd metrics about the members. Traffic from a silent member does not grow.
func (f *fleet) peers(context.Context) health.EtcdReading {
	r := health.NotAvailable[health.EtcdReading]("only its metrics about its peers are simulated")
	r.Peers = map[uint64]health.Peer{}
	for _, m := range f.etcd.list() {
		received := f.now().Seconds()
		if f.etcd.isSilent(m.ID) {
			received = 1
		}
		r.Peers[m.ID] = health.Peer{Received: received}
	}
	return r
}

// TestADeadVoterCostsASpareAsLittleInALargeFleet counts the spares' requests from a voter's death until another host
// has replaced it. The spares that stop resting may each send 250 requests more than at rest, on average and at any
// fleet size. The other spares send about as many as at rest.
func TestADeadVoterCostsASpareAsLittleInALargeFleet(t *testing.T) {
	t.Parallel()
	for _, spares := range []int{5, 120} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{t: t, pace: usualPace()}
			f.prepare = func(h *fleetHost) {
				h.config = fmt.Sprintf("repair: {dead: %s}\n", deadFleetGrace)
				h.network, h.metrics = &fleetNetwork{h: h, lostAt: map[uint64]time.Duration{}}, f.peers
			}
			f = newPreparedFleet(f, spares)
			defer f.close()
			f.settled()
			f.costOfADeath(f.rests())
		})
	}
}

func (f *fleet) costOfADeath(quiet map[string]asked) {
	f.t.Helper()
	restSpan, spares := f.restSpan(), len(f.hosts)-3
	before := f.etcd.count()
	f.loseHost("v3")
	called := map[string]bool{}
	took := f.until(deadFleetGrace+5*time.Minute, "a spare votes in place of v3", func() bool {
		for name, h := range f.hosts {
			if strings.HasPrefix(name, "s") && !h.agent.publisher.Current().View.Resting {
				called[name] = true
			}
		}
		return f.removed("v3") && len(f.voters()) == 3 && f.etcd.get(record.KeysFor("test").Op()) == ""
	})
	rate := func(n asked, span time.Duration) float64 { return float64(n.requests-n.renewed) / span.Seconds() }
	var extra, others, atRest float64
	locked := 0
	for host, d := range f.since(before) {
		switch now, rested := rate(d, took), rate(quiet[host], restSpan); {
		case !strings.HasPrefix(host, "s"):
			continue
		case called[host]:
			extra += (now - rested) * took.Seconds()
		default:
			others, atRest = others+now, atRest+rested
		}
		locked += d.locked
	}
	fmt.Printf("%5d spares and a dead voter, replaced after %s: %.0f requests more than at rest, of the %d that are "+
		"called; the others made %.1f requests/s, at rest %.1f\n", spares, took, extra, len(called), others, atRest)
	if locked != 1 {
		f.t.Errorf("the lock was taken %d times: more than the first spare has tried", locked)
	}
	if perCalled := extra / float64(max(len(called), 1)); perCalled > 250 {
		f.t.Errorf("each spare that is called made %.0f requests more than at rest", perCalled)
	}
	if others > 1.1*atRest+1 {
		f.t.Errorf("the spares that are not called made %.1f requests/s, at rest %.1f", others, atRest)
	}
}

// TestAnAgentStartedAfterAVoterDiedHasItsDomain checks that the agent obtains the failure domain of the dead voter
// although the dead host's record has expired. Without the domain, a second dead voter in the same failure domain would
// never be replaced.
func TestAnAgentStartedAfterAVoterDiedHasItsDomain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, smallPace())
		defer f.close()
		f.settled()
		f.loseHost("v3")
		f.until(5*time.Minute, "its record expires", func() bool {
			return f.etcd.get(record.KeysFor("test").Host("id-v3")) == ""
		})
		for _, name := range []string{"v1", "s0003"} {
			h := f.hosts[name]
			h.losePower()
			h.boot("second")
			f.until(time.Minute, name+" observes the members", func() bool {
				r := h.agent.publisher.Current()
				return r != nil && len(r.View.Cluster.Members) == 3
			})
			for i, m := range h.agent.publisher.Current().View.Cluster.Members {
				if want := fmt.Sprintf("rack-%d", i+1); m.Domain != want {
					t.Errorf("%s: %s is in %q, not in %q", name, m.Name, m.Domain, want)
				}
			}
		}
	})
}
