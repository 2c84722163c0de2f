// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// intruderFaults returns faults in which another client writes or deletes records below quorumd's prefix.
func intruderFaults() []fault {
	moment := func(name string, do func(w *world, h *host)) fault {
		return fault{
			name: name, weight: 6, low: time.Second, high: time.Second, needsCluster: true,
			begin: func(w *world, h *host, _ time.Duration) func() {
				if w.etcd.hasLeader() {
					do(w, h)
				}
				return nil
			},
		}
	}
	return []fault{
		moment("the operation record is deleted", func(w *world, _ *host) {
			if op := w.promises.currentOp(); op != nil {
				w.intrude(clientv3.OpDelete(w.keys.Op()))
			}
		}),
		moment("the operation record and the host record are deleted",
			func(w *world, _ *host) {
				if op := w.promises.currentOp(); op != nil {
					w.intrude(clientv3.OpDelete(w.keys.Op()), clientv3.OpDelete(w.keys.Host(op.Host)))
				}
			}),
		moment("a forged record of a standby's join in its rollback is written", func(w *world, _ *host) {
			for _, m := range w.etcd.learners() {
				note, err := m.host.files.read(stateDir + "/cluster.json")
				if w.promises.currentOp() != nil || err != nil || !bytes.Contains(note, []byte(`"standby"`)) {
					continue
				}
				c := m.host.config
				op := record.Op{
					Kind: policy.KindJoin, Host: c.Host.ID, HostName: c.Host.Name, Target: string(policy.RoleVoter),
					Phase:    string(policy.PhaseRollback),
					MemberID: record.MemberID(m.id), PeerURL: c.Etcd.PeerURL, Started: time.Unix(0, 0).UTC(),
					By: intruder,
				}
				if value, err := record.Encode(op); err == nil {
					w.intrude(clientv3.OpPut(w.keys.Op(), string(value)))
				}
			}
		}),
	}
}

// intruder is the name of the author in forged records.
const intruder = "intruder"

func (w *world) intrude(ops ...clientv3.Op) {
	w.etcd.index++
	_, _ = w.etcd.store.Txn(txnRequest(ops)) // a transaction without conditions always succeeds
	w.promises.intrudedAt = w.now()
	w.promises.afterApply()
}

// justIntruded reports whether an intruder wrote so recently that an agent may not have observed it.
func (p *promises) justIntruded() bool {
	return p.intrudedAt != 0 && p.w.now()-p.intrudedAt < p.staleness()
}

// hostRecord returns a host's record.
func (p *promises) hostRecord(id string) (record.Host, bool) {
	kv := p.w.etcd.store.Get(p.w.keys.Host(id))
	if kv == nil {
		return record.Host{}, false
	}
	h, err := record.Decode[record.Host](kv.Value)
	return h, err == nil
}

// checkExclusive checks, when an operation begins, that no other host's record shows an operation in progress. This
// must hold even if an intruder has deleted the operation record.
func (p *promises) checkExclusive(by *process, next record.Op) {
	w := p.w
	if own, ok := p.hostRecord(next.Host); ok && own.Turn.Equal(next.Started) { // the same operation is recorded again
		return
	}
	for _, pair := range w.etcd.store.Prefix(w.keys.Hosts()) {
		h, err := record.Decode[record.Host](pair.Value)
		if err != nil || h.Turn.IsZero() || h.ID == next.Host || w.now()-p.hostsChanged < p.staleness() {
			continue
		}
		if kv := w.etcd.store.Get(w.keys.Release(h.ID)); kv != nil {
			if r, err := record.Decode[record.Release](kv.Value); err == nil && r.Started.Equal(h.Turn) {
				continue
			}
		}
		p.breach("P1", by.host, "an operation begins during the operation of "+h.Name)
	}
}

// checkStandbyRemoval checks that no learner whose host reports it as a standby is removed because of a forged
// operation record.
func (p *promises) checkStandbyRemoval(by *process, m *member) {
	op := p.currentOp()
	if op == nil || op.By != intruder || uint64(op.MemberID) != m.id {
		return
	}
	if h, ok := p.hostRecord(op.Host); by.host == m.host || ok && h.Role == string(policy.RoleStandby) {
		p.breach("P2", by.host, "the standby on "+m.host.name+" is removed by a forged operation")
	}
}
