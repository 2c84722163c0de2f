// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

func TestAClusterIsBootstrappedOnce(t *testing.T) {
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
		{
			"etcd runs, and does not answer yet",
			func(v *View) { v.Unit.State, v.Unit.EnvReady = UnitActive, true }, StepNone, Starting,
		},
		{"the host is not qualified", func(v *View) {
			v.Health = Health{State: health.Qualifying, Text: "0 of 3000"}
		}, StepNone, NotQualified},
		{"the version of etcd is not safe", func(v *View) { v.Self.Etcd = Version{3, 4, 23} }, StepNone, VersionUnsafe},
		{"the data cannot be read", func(v *View) { v.Data.State = DataUnreadable }, StepNone, DataUnusable},
		{"after a crash etcd is started on its own data", func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: 1, MemberID: 1}
		}, StepStartUnit, ""},
		{"an operator has stopped etcd since", func(v *View) {
			v.Data, v.Unit.Ran = Data{State: DataMember, ClusterID: 1, MemberID: 1}, true
		}, StepNone, UnitStopped},
		{
			"a cluster answers, and its records cannot be read",
			func(v *View) { v.Cluster.Listed = true }, StepNone, NoQuorum,
		},
		{
			"the disk holds the remains of a failed first start",
			func(v *View) { v.Data.State = DataRemains },
			StepNone,
			DataUnusable,
		},
		{"a cluster answers", func(v *View) { v.Cluster = spareView().Cluster }, StepFinishBootstrap, ""},
		{
			"a cluster has answered before", func(v *View) { v.Bootstrap.LastCluster = clusterID },
			StepFinishBootstrap, "",
		},
		{"a cluster has answered before, and the host has its data", func(v *View) {
			v.Bootstrap.LastCluster, v.Data = clusterID, Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		}, StepStartUnit, ""},
		{
			"the host has belonged to a cluster",
			func(v *View) { v.Bootstrap.Done = true },
			StepFinishBootstrap,
			"",
		},
	})
}

func TestAnEmptyDiskNeverBootstrapsACluster(t *testing.T) {
	t.Parallel()
	v := spareView()
	v.Cluster = Cluster{Error: "refused"}
	if d := Decide(v); d.Step.Kind != StepNone {
		t.Fatalf("step is %q without a request to bootstrap", d.Step.Kind)
	}
}

func TestNoClusterIsBootstrappedWithASignOfAnExistingOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(v *View)
		kind   RefusalKind
		code   ReasonCode
		says   string // refusal; empty if a bootstrap is allowed
	}{
		"an empty host":    {func(*View) {}, 0, "", ""},
		"it only observes": {func(v *View) { v.Self.Mode = Observe }, Conflicts, ModeObserve, "only observes"},
		"a cluster answers": {
			func(v *View) { v.Cluster.Listed = true }, Conflicts, ClusterExists, "answers already",
		},
		"it has belonged to a cluster": {
			func(v *View) { v.Bootstrap.Done, v.Cluster.ExpectedID = true, 10 }, Conflicts, ClusterExists,
			"to cluster a",
		},
		"it has seen a cluster": {
			func(v *View) { v.Bootstrap.LastCluster = 11 }, Conflicts, ClusterExists, "seen cluster b",
		},
		"it has promised another host": {
			func(v *View) { v.BootstrapAttempt.Attempt, v.BootstrapAttempt.First = "x", "n1" }, Conflicts,
			ClusterExists, "committed to the attempt of n1",
		},
		"it has promised its own attempt": {
			func(v *View) { v.BootstrapAttempt.Attempt, v.BootstrapAttempt.First = "x", "n3" },
			0, "", "",
		},
		"its disk was not read": {func(v *View) { v.Data.State = DataUnknown }, NotNow, Starting, "not been read"},
		"there is data": {
			func(v *View) { v.Data.State = DataRemains }, Conflicts, ClusterExists, "data in /data",
		},
	} {
		v := View{Self: Self{Name: "n3", Mode: Manage}, Data: Data{State: DataEmpty}}
		c.change(&v)
		got := AgainstBootstrap(v, "/data", "/seen")
		switch {
		case (got == nil) != (c.says == ""):
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		case got != nil && (got.Kind != c.kind || got.Code != c.code || !strings.Contains(got.Text, c.says) ||
			strings.Contains(got.Hint, "/seen") != (v.Bootstrap.LastCluster != 0)):
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		}
	}
}
