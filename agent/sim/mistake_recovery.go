// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/systemd"
)

// recoveryMistakes returns mistakes in a cluster after quorum loss.
func recoveryMistakes() []Mistake {
	loses := func(late bool, then func(w *world, h *host)) func(w *world) {
		return func(w *world) {
			w.loseQuorum(late)
			for i := range 10 {
				w.after(time.Duration(3+3*i)*time.Minute, laneFaults, func() { w.onSurvivor(then) })
			}
		}
	}
	return []Mistake{
		{
			Name: "the recovered cluster does not announce which cluster it replaces", Promise: "liveness",
			trouble: loses(true, nil),
			parts: func(p *process, opt *agent.Options) {
				opt.Etcd = &discreet{opt.Etcd, p.host.world.keys.Recovered()}
			},
		},
		{
			Name: "an agent forgets its plan when it is killed", Promise: "P4", Says: "while a plan is in force",
			trouble: loses(false, func(w *world, h *host) {
				h.kill()
				w.after(time.Second, laneFaults, h.agentBack)
			}),
			parts: func(_ *process, opt *agent.Options) { opt.Files = oblivious{opt.Files} },
		},
		{
			Name: "no start guard stops etcd at boot", Promise: "P4", Says: "comes up again",
			trouble: loses(false, func(w *world, h *host) {
				h.losePower()
				w.after(10*time.Second, laneFaults, h.powerUp)
			}),
			parts: func(_ *process, opt *agent.Options) { opt.Files = unheld{opt.Files} },
		},
		{
			Name: "a running etcd counts as down", Promise: "P3", Says: "that an etcd has open",
			trouble: loses(false, nil),
			parts: func(p *process, opt *agent.Options) {
				opt.Unit = &blindUnit{opt.Unit, func() bool {
					p.host.world.mu.Lock()
					defer p.host.world.mu.Unlock()
					return p.host.planInForce() != nil
				}}
			},
		},
	}
}

// onSurvivor applies do to the survivor, if there is one.
func (w *world) onSurvivor(do func(w *world, h *host)) {
	i := slices.IndexFunc(w.hosts, func(h *host) bool {
		k := h.planInForce()
		return k != nil && k.Alone && h.powered
	})
	if i >= 0 && do != nil {
		do(w, w.hosts[i])
	}
}

// discreet reports a record as written without writing it.
type discreet struct {
	cluster.Etcd
	key string
}

func (d *discreet) Txn(ctx context.Context, conds []clientv3.Cmp, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	if slices.ContainsFunc(ops, func(op clientv3.Op) bool { return string(op.KeyBytes()) == d.key }) {
		return &clientv3.TxnResponse{Succeeded: true}, nil
	}
	return d.Etcd.Txn(ctx, conds, ops...)
}

// oblivious does not find the plan that an earlier agent recorded.
type oblivious struct{ hoststate.Files }

func (o oblivious) Read(path string) ([]byte, error) {
	if strings.HasSuffix(path, "/recovery.json") {
		return nil, fs.ErrNotExist
	}
	return o.Files.Read(path)
}

// unheld does not write the start guard.
type unheld struct{ hoststate.Files }

func (u unheld) Write(path string, data []byte, durable bool) error {
	if path == holdFile {
		return nil
	}
	return u.Files.Write(path, data, durable)
}

// blindUnit shows a running etcd as stopped.
type blindUnit struct {
	systemd.Unit
	when func() bool
}

func (b *blindUnit) Status(ctx context.Context) (systemd.Status, error) {
	s, err := b.Unit.Status(ctx)
	if b.when() {
		s.State = systemd.Inactive
	}
	return s, err
}
