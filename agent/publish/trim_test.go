// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
)

// hanging is an etcd that never answers.
type hanging struct{ cluster.Etcd }

func (hanging) ReadLast(ctx context.Context, _ string, _ int64) (cluster.Range, error) {
	<-ctx.Done()
	return cluster.Range{}, ctx.Err()
}

func TestTrimmingTheHistoryDelaysTheLoopByAtMostACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opt := Options{Etcd: hanging{}, Now: func() time.Duration { return 0 }, Logger: slog.New(slog.DiscardHandler)}
		opt.Config.Timing.CallTimeout = 2 * time.Second
		j, began := NewJournal(opt, record.KeysFor("test")), time.Now()
		j.Trim(t.Context())
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
