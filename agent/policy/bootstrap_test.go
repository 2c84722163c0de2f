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
		{"etcd is waited for", func(v *View) { v.Unit.State, v.Unit.EnvReady = UnitActive, true }, StepNone, Starting},
		{"only on a qualified host", func(v *View) {
			v.Health = Health{State: health.Qualifying, Text: "0 of 3000"}
		}, StepNone, NotQualified},
		{"only with a safe version", func(v *View) { v.Self.Etcd = Version{3, 4, 23} }, StepNone, VersionUnsafe},
		{"not on data that cannot be read", func(v *View) { v.Data.State = DataUnreadable }, StepNone, DataUnusable},
		{"after a crash etcd is started on its own data", func(v *View) {
			v.Data = Data{State: DataMember, ClusterID: 1, MemberID: 1}
		}, StepStartUnit, ""},
		{"not if an operator has stopped it since", func(v *View) {
			v.Data, v.Unit.Ran = Data{State: DataMember, ClusterID: 1, MemberID: 1}, true
		}, StepNone, UnitStopped},
		{"not if only the records are unreadable", func(v *View) { v.Cluster.Listed = true }, StepNone, NoQuorum},
		{
			"not on the remains of a failed first start",
			func(v *View) { v.Data.State = DataRemains },
			StepNone,
			DataUnusable,
		},
		{"not if a cluster answers", func(v *View) { v.Cluster = spareView().Cluster }, StepFinishBootstrap, ""},
		{
			"not if one has ever answered", func(v *View) { v.Bootstrap.LastCluster = clusterID },
			StepFinishBootstrap, "",
		},
		{"even with its own data", func(v *View) {
			v.Bootstrap.LastCluster, v.Data = clusterID, Data{State: DataMember, ClusterID: clusterID, MemberID: 1}
		}, StepStartUnit, ""},
		{
			"not on a host that has belonged to a cluster",
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
