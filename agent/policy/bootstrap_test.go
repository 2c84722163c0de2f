// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestANewClusterIsMadeOnce(t *testing.T) {
	t.Parallel()
	asked := func() View {
		v := spareView()
		v.Bootstrap.Requested = true
		v.Cluster, v.Clock, v.Hosts, v.Lock = Cluster{Error: "refused"}, Clock{}, nil, Lock{}
		return v
	}
	play(t, asked, []scene{
		{"the environment is written", nil, StepWriteEnv, ""},
		{"etcd is started", func(v *View) { v.Unit.EnvReady = true }, StepStartUnit, ""},
		{"etcd is waited for", func(v *View) { v.Unit.State, v.Unit.EnvReady = UnitActive, true }, StepNone, Starting},
		{"only on a qualified host", func(v *View) {
			v.Health = Health{State: health.Qualifying, Text: "0 of 3000"}
		}, StepNone, NotQualified},
		{"only with a safe version", func(v *View) { v.Self.Etcd = Version{3, 4, 23} }, StepNone, VersionUnsafe},
		{"not on data that cannot be read", func(v *View) { v.Data.State = DataUnreadable }, StepNone, DataUnusable},
		{"after a crash etcd is started on what it made", func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: 1, MemberID: 1}
		}, StepStartUnit, ""},
		{"not when a person has stopped it since", func(v *View) {
			v.Data, v.Unit.Ran = Data{State: DataMember, ClusterID: 1, MemberID: 1}, true
		}, StepNone, UnitStopped},
		{"not when only the records cannot be read", func(v *View) { v.Cluster.Listed = true }, StepNone, NoQuorum},
		{"not on what a failed first start left", func(v *View) { v.Data.State = DataRemains }, StepNone, DataUnusable},
		{"not when a cluster answers", func(v *View) { v.Cluster = spareView().Cluster }, StepFinishBootstrap, ""},
		{"not when one has ever answered", func(v *View) { v.Bootstrap.Seen = clusterID }, StepFinishBootstrap, ""},
		{"though what it made is its own", func(v *View) {
			v.Bootstrap.Seen, v.Data = clusterID, Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		}, StepStartUnit, ""},
		{"not on a host that has belonged to one", func(v *View) { v.Bootstrap.Done = true }, StepFinishBootstrap, ""},
	})
}

func TestAnEmptyDiskNeverMeansANewCluster(t *testing.T) {
	t.Parallel()
	v := spareView()
	v.Cluster = Cluster{Error: "refused"}
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Fatalf("step is %q without a request to bootstrap", d.Step.Kind)
	}
}
