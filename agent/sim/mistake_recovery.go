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

// recoveryMistakes returns mistakes in the recovery from quorum loss.
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
				opt.Etcd = &unannouncedRecovery{opt.Etcd, p.host.world.keys.Recovered()}
			},
		},
		{
			Name: "a restarted agent does not read its plan", Promise: "P4", Text: "while a plan is in force",
			trouble: loses(false, func(w *world, h *host) {
				h.kill()
				w.after(time.Second, laneFaults, h.restartAgent)
			}),
			parts: func(_ *process, opt *agent.Options) { opt.Files = planNotFound{opt.Files} },
		},
		{
			Name: "no start guard stops etcd at boot", Promise: "P4", Text: "is started again",
			trouble: loses(false, func(w *world, h *host) {
				h.losePower()
				w.after(10*time.Second, laneFaults, h.powerUp)
			}),
			parts: func(_ *process, opt *agent.Options) { opt.Files = noStartGuard{opt.Files} },
		},
		{
			Name: "a running etcd counts as down", Promise: "P3", Text: "that an etcd has open",
			trouble: loses(false, nil),
			parts: func(p *process, opt *agent.Options) {
				opt.Unit = &runningAsStopped{opt.Unit, func() bool {
					p.host.world.mu.Lock()
					defer p.host.world.mu.Unlock()
					return p.host.planInForce() != nil
				}}
			},
		},
	}
}

// onSurvivor applies do to the survivor if a plan is in force there and the host has power.
func (w *world) onSurvivor(do func(w *world, h *host)) {
	i := slices.IndexFunc(w.hosts, func(h *host) bool {
		k := h.planInForce()
		return k != nil && k.Alone && h.powered
	})
	if i >= 0 && do != nil {
		do(w, w.hosts[i])
	}
}

// unannouncedRecovery does not write the record that announces a recovery, but reports the write as successful.
type unannouncedRecovery struct {
	cluster.Etcd
	key string
}

func (u *unannouncedRecovery) Txn(ctx context.Context, conds []clientv3.Cmp, ops ...clientv3.Op,
) (*clientv3.TxnResponse, error) {
	if slices.ContainsFunc(ops, func(op clientv3.Op) bool { return string(op.KeyBytes()) == u.key }) {
		return &clientv3.TxnResponse{Succeeded: true}, nil
	}
	return u.Etcd.Txn(ctx, conds, ops...)
}

// planNotFound hides the plan that an earlier agent process has recorded.
type planNotFound struct{ hoststate.Files }

func (o planNotFound) Read(path string) ([]byte, error) {
	if strings.HasSuffix(path, "/recovery.json") {
		return nil, fs.ErrNotExist
	}
	return o.Files.Read(path)
}

// noStartGuard does not write the start guard.
type noStartGuard struct{ hoststate.Files }

func (u noStartGuard) Write(path string, data []byte, durable bool) error {
	if path == startGuardFile {
		return nil
	}
	return u.Files.Write(path, data, durable)
}

// runningAsStopped reports a running etcd as stopped while a condition holds.
type runningAsStopped struct {
	systemd.Unit
	when func() bool
}

func (b *runningAsStopped) Status(ctx context.Context) (systemd.Status, error) {
	s, err := b.Unit.Status(ctx)
	if b.when() {
		s.State = systemd.Inactive
	}
	return s, err
}
