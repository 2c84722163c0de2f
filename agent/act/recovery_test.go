// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestRecoveryEndsEvenIfAnAlarmPreventsItsRecord(t *testing.T) {
	t.Parallel()
	for alarm, want := range map[etcdserverpb.AlarmType]bool{
		etcdserverpb.AlarmType_NONE: true, etcdserverpb.AlarmType_NOSPACE: false, etcdserverpb.AlarmType_CORRUPT: false,
	} {
		t.Run(alarm.String(), func(t *testing.T) {
			t.Parallel()
			etcd := testbed.StartCluster(t, 1, testbed.ClusterOptions{})
			list, err := etcd.Client(t).MemberList(t.Context())
			must(t, err)
			if alarm != etcdserverpb.AlarmType_NONE {
				_, err = etcdserverpb.NewMaintenanceClient(etcd.Client(t).ActiveConnection()).Alarm(t.Context(),
					&etcdserverpb.AlarmRequest{
						Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: list.Members[0].ID, Alarm: alarm,
					})
				must(t, err)
			}
			var log bytes.Buffer
			opt := options(t, hoststate.HostFiles{})
			opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
			client, err := cluster.New(cluster.Options{
				Endpoints: etcd.Endpoints(), CallTimeout: 10 * time.Second, Logger: opt.Logger,
			})
			must(t, err)
			defer client.Close()
			opt.Etcd = client
			plan := hoststate.Recovery{Recovery: control.Recovery{
				Plan: "abcdefghijkl", Old: 1, New: record.MemberID(list.Header.ClusterId), Alone: true,
			}}
			_, err = opt.Files.BeginRecovery(plan)
			must(t, err)
			a := New(opt)
			r := decided(policy.StepEndRecovery, nil)
			r.Recovery, r.Wall, r.Decision.Step.Outcome = &plan, time.Now(), policy.Recovered
			r.Decision.Notes.Recovery = policy.RecoveryAnnounced
			r.View.Recovery = &policy.Recovery{Plan: plan.Plan, Survivor: true}
			if done, ended := a.Act(t.Context(), r); !ended || done.Err != nil {
				t.Fatalf("the step: %+v, %t", done, ended)
			}
			inForce, last := opt.Files.Recoveries()
			if inForce != nil || last == nil || last.Code != policy.Recovered {
				t.Errorf("the plan is %+v, the last one ended as %+v", inForce, last)
			}
			got, err := etcd.Client(t).Get(t.Context(), a.keys.Recovered())
			must(t, err)
			if (len(got.Kvs) == 1) != want || strings.Contains(log.String(), "etcdctl alarm list") == want {
				t.Errorf("there are %d records of it, and the log says %q", len(got.Kvs), log.String())
			}
		})
	}
}
