// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// noQuorum is an etcd that accepts no writes, so history lines stay queued.
type noQuorum struct{ cluster.Etcd }

func (noQuorum) Txn(context.Context, []clientv3.Cmp, ...clientv3.Op) (*clientv3.TxnResponse, error) {
	return nil, errors.New("no quorum")
}

func TestOnlyAdvisoryFindingsCanBeMutedAndWithoutEtcd(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.opt.Checks = health.Checks(health.DefaultThresholds())
	journal := publish.NewJournal(publish.Options{
		Config: h.opt.Config, Etcd: noQuorum{}, Wall: time.Now, Logger: h.opt.Logger,
	}, record.KeysFor("test"))
	h.opt.History = journal
	refused := func(err error, kind control.Kind, says string) {
		t.Helper()
		e, ok := errors.AsType[*control.Error](err)
		if !ok || e.Kind != kind || !strings.Contains(e.Message, says) || e.Hint == "" {
			t.Errorf("%v; want %q", err, says)
		}
	}
	for _, c := range h.opt.Checks {
		for _, p := range c.Problems {
			req := control.MuteRequest{Code: string(p.Code), Reason: "it is known", For: control.Duration(time.Hour)}
			m, err := h.Mute(t.Context(), req, "root")
			if c.Gates != health.Nothing {
				refused(err, control.Conflicts, "gates")
			} else if err != nil || m.State != p.State || m.By != "root" || m.Until.Sub(m.Since) != time.Hour {
				t.Errorf("%s: %+v, %v", p.Code, m, err)
			}
		}
	}
	unknown := control.MuteRequest{Code: "NONSENSE", Reason: "x", For: control.Duration(time.Hour)}
	_, err := h.Mute(t.Context(), unknown, "root")
	refused(err, control.Wrong, "no check reports that finding")
	if hold, _ := h.files.Mutes(nil, time.Now()); len(hold) == 0 || h.woken != len(hold) {
		t.Errorf("%d hold, the loop was woken %d times", len(hold), h.woken)
	}
	if err := h.Unmute(t.Context(), string(health.MemoryLow), "root"); err != nil {
		t.Error(err)
	}
	refused(h.Unmute(t.Context(), string(health.MemoryLow), "root"), control.Conflicts, "it is not muted")
	if !journal.Waiting() {
		t.Error("the history has no record of the mute")
	}
}
