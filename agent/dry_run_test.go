// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func TestADryRunAnswersAsTheRequestWouldAndChangesNothing(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		h := f.hosts["v2"].agent
		removal := control.RemovalRequest{
			Member: "v3", Reason: "a test", For: control.Duration(time.Minute), DryRun: true,
		}
		_, dry := h.RemoveMember(t.Context(), removal, "root")
		removal.DryRun = false
		if _, err := h.RemoveMember(t.Context(), removal,
			"root"); dry == nil || err == nil || dry.Error() != err.Error() {
			t.Errorf("a dry run of the removal of a live voter is answered %v, the request %v", dry, err)
		}
		f.loseHost("v3")
		f.pass(time.Minute)
		removal.DryRun = true
		if got, err := h.RemoveMember(t.Context(), removal, "root"); err != nil || !got.DryRun || got.MemberID != 3 {
			t.Errorf("the removal would be %+v, %v", got, err)
		}
		rollout := control.RolloutRequest{
			Work: policy.WorkReboot, Reason: "a test", DryRun: true,
			Hosts: []string{"v9"},
		}
		if got, err := h.StartRollout(t.Context(), rollout, "root"); err == nil {
			t.Errorf("a rollout of an unknown host would be %+v", got)
		}
		rollout.Hosts = []string{"v1", "v2"}
		if got, err := h.StartRollout(t.Context(), rollout, "root"); err != nil || !got.DryRun || len(got.Hosts) != 2 {
			t.Errorf("the rollout would be %+v, %v", got, err)
		}
		value, err := record.Encode(record.Rollout{ID: "x", Work: "reboot", State: record.RolloutPaused})
		must(t, err)
		f.put(record.KeysFor("test").Rollout(), string(value))
		rollout.AfterAbort, rollout.DryRun = false, true
		if got, err := h.StartRollout(t.Context(), rollout, "root"); err == nil {
			t.Errorf("while another one is paused, the rollout would be %+v", got)
		}
		rollout.AfterAbort = true
		if got, err := h.StartRollout(t.Context(), rollout, "root"); err != nil || !got.DryRun || len(got.Hosts) != 2 {
			t.Errorf("after the other one was aborted, the rollout would be %+v, %v", got, err)
		}
		_, err = h.opt.Etcd.Txn(t.Context(), nil, clientv3.OpDelete(record.KeysFor("test").Rollout()))
		must(t, err)
		restart := control.MaintenanceRequest{
			Work: policy.WorkRestart, Reason: "a test", For: control.Duration(time.Hour), DryRun: true,
		}
		if got, err := h.RequestMaintenance(t.Context(), restart, "root"); err != nil || !got.DryRun {
			t.Errorf("the restart would be %+v, %v", got, err)
		}
		f.pass(5 * time.Minute)
		recorded, _ := h.files.Removals()
		asked, _ := h.files.Asked()
		if rollouts := f.etcd.get(record.KeysFor("test").Rollout()); recorded != nil || asked != nil || rollouts != "" {
			t.Errorf("the recorded removal is %+v, the request %+v and the rollout %q", recorded, asked, rollouts)
		}
		if f.removed("v3") {
			t.Error("the member was removed")
		}
	})
}
