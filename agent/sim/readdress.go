// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// drawReaddresses reports whether operators change hosts' peer URLs, which they do in a third of the clusters without
// quorum loss. It uses its own random numbers, so that all other draws remain the same.
func (p plan) drawReaddresses() bool {
	return rand.New(rand.NewPCG(p.Seed, 9)).IntN(3) == 0 && p.LostAt == 0
}

// peerURLs returns the two peer URLs between which operators switch a host. They configure the first one initially.
func (h *host) peerURLs() [2]string {
	return [2]string{
		fmt.Sprintf("http://10.0.0.%d:2380", h.index+1), fmt.Sprintf("http://10.1.0.%d:2380", h.index+1),
	}
}

// hostByPeerURL returns the host that has or had the given peer URL.
func (w *world) hostByPeerURL(url string) *host {
	return w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool {
		urls := h.peerURLs()
		return slices.Contains(urls[:], url)
	})]
}

// accepts reports whether the host's etcd, if it runs, accepts connections at a peer URL.
func (h *host) accepts(peerURL string) bool {
	return h.unit.listens == peerURL && h.blockedURL != peerURL
}

// dials reports whether the etcd of one member connects to another member's registered peer URL, or still has the
// connection from before that URL changed.
func (w *world) dials(from, to *member) bool {
	since := max(from.upSince, to.upSince, w.links[from.host.index][to.host.index].since,
		w.links[to.host.index][from.host.index].since)
	return to.host.accepts(to.peerURL) || to.urlAt > since
}

// connected reports whether two members can exchange messages: their hosts are linked, and at least one of the members
// can connect to the other.
func (w *world) connected(a, b *member) bool {
	return w.linked(a.host, b.host) && (a == b || w.dials(a, b) || w.dials(b, a))
}

// memberAt returns the member with a registered peer URL, or nil.
func (e *etcd) memberAt(peerURL string) *member {
	i := slices.IndexFunc(e.members, func(m *member) bool { return m.peerURL == peerURL })
	if i < 0 {
		return nil
	}
	return e.members[i]
}

// checkUpdate returns the error of the checks before a member's peer URL is replaced. etcd's strict reconfiguration
// check does not cover updates.
func (e *etcd) checkUpdate(id uint64, peerURL string) error {
	m := e.find(id)
	if m == nil {
		return rpctypes.ErrGRPCMemberNotFound
	}
	if o := e.memberAt(peerURL); o != nil && o != m {
		return rpctypes.ErrGRPCPeerURLExist
	}
	return nil
}

// applyUpdate replaces a member's peer URL. Existing connections stay.
func (e *etcd) applyUpdate(by *process, id uint64, peerURL string, after time.Duration) {
	m := e.find(id)
	if e.checkUpdate(id, peerURL) != nil || m.peerURL == peerURL {
		return
	}
	e.w.promises.beforeUpdate(by, m, peerURL, after)
	if m.host.accepts(m.peerURL) {
		m.urlAt = e.w.now()
	}
	m.peerURL, m.unverified = peerURL, true
	e.index++
	e.w.counts.Readdressed++
	e.w.event(m.host, eventEtcd, 8, "etcd: %x has the peer URL %s", id, peerURL)
	e.update()
}

// verifyURLs records which members are reachable at their registered peer URLs.
func (e *etcd) verifyURLs() {
	for _, m := range e.members {
		if m.runs() && m.host.accepts(m.peerURL) {
			m.unverified = false
		}
	}
}

// readdressFaults returns the faults in which operators change peer URLs and request readdresses. Sometimes a firewall
// drops the connections to a new URL, another voter fails meanwhile, or the operators restore the old URL.
func readdressFaults() []fault {
	return []fault{
		{
			name: "an operator changes a host's peer URL", weight: 10, low: 5 * time.Minute, high: time.Hour,
			needsCluster: true,
			begin: func(w *world, h *host, d time.Duration) func() {
				by := w.hosts[w.faults.IntN(len(w.hosts))]
				w.setPeerURL(h)
				if w.faults.IntN(3) == 0 {
					h.blockedURL = h.peerURL()
					w.networkChanged()
				}
				if w.faults.IntN(3) == 0 {
					w.after(time.Minute+d/8, laneFaults, func() { w.failAnother(h, d/4) })
				}
				undone := w.faults.IntN(2) == 0
				w.after(time.Minute, laneFaults, func() { w.readdress(by, h) })
				w.after(d/2, laneFaults, func() {
					if undone && !w.healed {
						w.setPeerURL(h)
					}
				})
				return func() { h.blockedURL = ""; w.networkChanged() }
			},
		},
		{
			name: "an operator changes the peer URLs of all hosts", weight: 3, low: 5 * time.Minute, high: time.Hour,
			needsCluster: true,
			begin: func(w *world, by *host, _ time.Duration) func() {
				for _, h := range w.hosts {
					w.setPeerURL(h)
				}
				w.after(time.Minute, laneFaults, func() { w.readdress(by, w.hosts...) })
				return nil
			},
		},
	}
}

// setPeerURL switches the configured peer URL of a host between the host's two URLs, and restarts the agent.
func (w *world) setPeerURL(h *host) {
	urls := h.peerURLs()
	next := urls[1]
	if h.peerURL() == next {
		next = urls[0]
	}
	h.config.Etcd.PeerURL, h.config.Etcd.ListenPeerURL = next, next
	w.event(h, eventFault, 9, "its peer URL is configured as %s", next)
	if h.agent != nil {
		h.agent.cancel()
		h.agent = nil
		w.after(3*time.Second, laneFaults, h.restartAgent)
	}
}

// readdress lets an operator request a readdress of hosts. The request may be refused.
func (w *world) readdress(by *host, hosts ...*host) {
	req := control.RolloutRequest{Work: policy.WorkReaddress, Reason: "a new subnet"}
	for _, h := range hosts {
		if w.etcd.memberOn(h) != nil {
			req.Hosts = append(req.Hosts, h.name)
		}
	}
	if len(req.Hosts) == 0 {
		return
	}
	w.operator(by, func(ctx context.Context, p *process) {
		_, err := p.agent.StartRollout(ctx, req, "an operator")
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(by, eventFault, uint64(len(req.Hosts)), "readdress of %v requested: %v", req.Hosts, err)
	})
}

// readdressBack lets operators end all readdresses after the faults have ended. They release a readdress that has
// waited for an hour, and abort a rollout that is in the way. Otherwise, one of them requests the readdress of all
// members whose registered peer URL is not the configured one, or not the one at which etcd listens. But a readdress
// waits while a voter is down, or there are fewer than three voters or an even number of them. The changed URLs may
// then keep other hosts from joining, so operators restore the URLs at which etcd listens.
func (w *world) readdressBack() {
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.agent != nil && h.powered })
	var differ []*host
	for _, m := range w.etcd.members {
		if !m.host.dead && (m.peerURL != m.host.peerURL() || m.host.unit.listens != m.peerURL) {
			differ = append(differ, m.host)
		}
	}
	if !w.healed || i < 0 {
		return
	}
	voters, by := len(w.etcd.voters()), w.hosts[i]
	if op := w.promises.currentOp(); op != nil && op.Work == string(policy.WorkReaddress) &&
		op.Phase == string(policy.PhaseBegun) && w.now()-w.promises.opSince > time.Hour {
		// the host waits for voters that cannot return before its operation has ended, because they are replaced
		w.releaseOp(by)
		return
	}
	if len(differ) == 0 {
		return
	}
	if w.rolloutInTheWay(voters) {
		w.setRollout(by, record.RolloutAborted)
		return
	}
	down := slices.ContainsFunc(w.etcd.members, func(m *member) bool {
		return !m.learner && m.downAt != 0 && w.now()-m.downAt > time.Hour
	})
	if voters >= 3 && voters%2 == 1 && !down {
		w.readdress(by, differ...)
		return
	}
	for _, h := range differ {
		if h.peerURL() != h.unit.listens {
			w.setPeerURL(h)
		}
	}
}

// rolloutInTheWay reports whether a rollout that does not end by itself keeps operators from requesting a readdress.
func (w *world) rolloutInTheWay(voters int) bool {
	kv := w.etcd.store.Get(w.keys.Rollout())
	if kv == nil {
		return false
	}
	r, err := record.Decode[record.Rollout](kv.Value)
	// a readdress does not end while there are too few voters or an even number of them; in any other rollout, hosts
	// wait while a configured peer URL conflicts with the registered one
	waits := r.Work != string(policy.WorkReaddress) || voters < 3 || voters%2 == 0
	return err == nil && (r.State == record.RolloutPaused || r.State == record.RolloutRunning && waits)
}

// beforeUpdate checks the update of a member's peer URL when it is applied: an operator has requested it, and no other
// voter has an unverified URL, unless the member's etcd is already reachable at the new URL.
func (p *promises) beforeUpdate(by *process, m *member, peerURL string, after time.Duration) {
	if m.lateURL = p.overtaken(after); m.lateURL || p.justIntruded() {
		return
	}
	if op := p.currentOp(); op == nil || m.host != by.host || op.Work != string(policy.WorkReaddress) {
		p.breach("P9", by.host, "the peer URL of "+m.host.name+" changes without a readdress of that host")
	}
	for _, o := range m.etcd.voters() {
		if o != m && !m.learner && o.unverified && !o.lateURL && !m.host.accepts(peerURL) {
			p.breach("P9", by.host, "two voters have unverified peer URLs: "+m.host.name+" and "+o.host.name)
		}
	}
}

// checkReaddressEnd checks that a readdress ends only if the host's etcd is reachable at its registered peer URL. The
// only member of a cluster has no other member that could reach it.
func (p *promises) checkReaddressEnd(by *process) {
	m := p.w.etcd.memberOn(by.host)
	if m != nil && m.unverified && !m.lateURL && len(m.etcd.members) > 1 &&
		p.worksOn(by.host) == policy.WorkReaddress && !p.justIntruded() {
		p.breach("P9", by.host, "the readdress ends although no member reaches "+m.peerURL)
	}
}

// readdressMistakes returns the mistakes about peer URLs.
func readdressMistakes() []Mistake {
	always := func(*record.Op) bool { return true }
	before := func(op *record.Op) bool { return op != nil && op.Phase == string(policy.PhaseReady) }
	return []Mistake{
		{
			Name: "a new peer URL counts as connected at once", Promise: "P9", Text: "the readdress ends although",
			parts: connectedWhen(always),
			trouble: func(w *world) {
				w.after(5*time.Minute, laneFaults, func() { w.readdressBlocked(w.anyFollower().host) })
			},
		},
		{
			Name: "the other voters' peer URLs are not verified before a readdress", Promise: "P9",
			Text: "two voters have unverified", parts: connectedWhen(before),
			trouble: func(w *world) {
				w.after(5*time.Minute, laneFaults, func() {
					first, second := w.anyFollower().host, w.etcd.leader.host
					w.readdressBlocked(first)
					w.after(15*time.Minute, laneFaults, func() { w.releaseOp(second) })
					w.after(20*time.Minute, laneFaults, func() { w.readdressBlocked(second) })
				})
			},
		},
	}
}

// readdressBlocked requests the readdress of a host while a firewall drops the connections to its new peer URL.
func (w *world) readdressBlocked(h *host) {
	w.setPeerURL(h)
	h.blockedURL = h.peerURL()
	w.networkChanged()
	w.after(time.Minute, laneFaults, func() { w.readdress(h, h) })
	w.after(time.Hour, laneFaults, func() { h.blockedURL = ""; w.networkChanged() })
}

// releaseOp lets an operator abort the rollout and release the operation in flight.
func (w *world) releaseOp(by *host) {
	w.operator(by, func(ctx context.Context, p *process) {
		_, _ = p.agent.SetRollout(ctx, record.RolloutAborted, "an operator")
		_ = p.agent.ReleaseOp(ctx, control.ReleaseRequest{Reason: "it is stuck"}, "an operator")
	})
}

// connectedWhen makes all members count as connected while the operation in flight meets a condition.
func connectedWhen(when func(op *record.Op) bool) func(p *process, opt *agent.Options) {
	return func(p *process, opt *agent.Options) {
		now := func() bool {
			w := p.host.world
			w.mu.Lock()
			defer w.mu.Unlock()
			return when(w.promises.currentOp())
		}
		metrics := opt.EtcdMetrics
		opt.EtcdMetrics = func(ctx context.Context) health.EtcdReading {
			r := metrics(ctx)
			for id, peer := range r.Peers {
				peer.Active = peer.Active || now()
				r.Peers[id] = peer
			}
			return r
		}
		opt.Network = openPorts{opt.Network, now}
	}
}

// openPorts shows a member's peer port as open while a condition holds, if the client port is open.
type openPorts struct {
	observe.Network
	when func() bool
}

func (o openPorts) Readings() []network.Reading {
	all := o.Network.Readings()
	for i, r := range all {
		if r.Client.State.Accepts() && o.when() {
			all[i].Peer, all[i].Missed = r.Client, false
		}
	}
	return all
}
