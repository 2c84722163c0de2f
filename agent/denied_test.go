// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
)

// forbidding is an etcd that denies all reads and transactions.
type forbidding struct{ *fleetClient }

func (forbidding) Read(context.Context, ...cluster.Span) (cluster.Range, error) {
	return cluster.Range{}, rpctypes.ErrPermissionDenied
}

func (forbidding) Txn(context.Context, []clientv3.Cmp, ...clientv3.Op) (*clientv3.TxnResponse, error) {
	return nil, rpctypes.ErrPermissionDenied
}

// overfull is an etcd with more data under the hosts' keys than one read returns.
type overfull struct{ *fleetClient }

func (o overfull) Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error) {
	found, err := o.fleetClient.Read(ctx, spans...)
	if spans[0].Start == record.KeysFor("test").Hosts() {
		found.Rest = record.KeysFor("test").Host("x")
	}
	return found, err
}

// operatorOf returns an Operator of a host that uses this etcd and has completed no round.
func operatorOf(etcd cluster.Etcd) *operate.Operator {
	c := hostConfig()
	c.Cluster.Name = "test"
	return operate.New(operate.Options{
		Config: c, Etcd: etcd, Rounds: publish.New(publish.Options{}, record.KeysFor("test"), nil), Wall: time.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
}

func TestARolloutOfAllHostsIsRefusedIfNotAllWereRead(t *testing.T) {
	t.Parallel()
	a := operatorOf(overfull{newFleetEtcd().of("v1")})
	_, err := a.StartRollout(t.Context(), control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"}, "root")
	if e, is := errors.AsType[*control.Error](err); !is || e.Code != string(policy.RecordUnreadable) ||
		!strings.Contains(e.Message, "hosts/x: not read") {
		t.Errorf("got %v", err)
	}
}

func TestADeniedCallIsNotReportedAsQuorumLoss(t *testing.T) {
	t.Parallel()
	a := operatorOf(forbidding{newFleetEtcd().of("v1")})
	for name, do := range map[string]func() error{
		"pause": func() error {
			req := control.PauseRequest{Reason: "a test", For: control.Duration(time.Hour)}
			_, err := a.Pause(t.Context(), req, "root")
			return err
		},
		"resume": func() error { return a.Resume(t.Context(), "root") },
		"operation release": func() error {
			return a.ReleaseOp(t.Context(), control.ReleaseRequest{Reason: "a test"}, "root")
		},
		"rollout start": func() error {
			_, err := a.StartRollout(t.Context(), control.RolloutRequest{Work: policy.WorkReboot, Reason: "a test"},
				"root")
			return err
		},
	} {
		e, is := errors.AsType[*control.Error](do())
		if !is || e.Kind != control.Forbidden || e.Code != string(policy.PermissionDenied) ||
			!strings.Contains(e.Message, "permission denied") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}
