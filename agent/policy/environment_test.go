// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestANewClusterIsMadeOnlyAtAWordAndWhileNoneAnswers(t *testing.T) {
	t.Parallel()
	asked := Bootstrap{Requested: true}
	for name, c := range map[string]struct {
		view  View
		want  Environment
		alone bool
	}{
		"nobody asks":                  {View{}, EnvironmentListed, false},
		"nobody asks, and one answers": {View{Cluster: Cluster{Listed: true}}, EnvironmentListed, false},
		"one is asked for":             {View{Bootstrap: asked}, EnvironmentNew, true},
		"it answers, and cannot be read yet": {
			View{Bootstrap: asked, Cluster: Cluster{Listed: true}}, EnvironmentNew, false,
		},
		"one answers": {
			View{Bootstrap: asked, Cluster: Cluster{Listed: true, Reachable: true}}, EnvironmentListed, false,
		},
		"the host goes on with its own data": {View{Recovery: &Recovery{Survivor: true}}, EnvironmentListed, false},
		"it goes on with a snapshot":         {View{Recovery: &Recovery{Snapshot: true}}, EnvironmentAlone, false},
		// a host that was to make a cluster, and could not yet, may be the one that does
		"it goes on with a snapshot, and one was asked for": {
			View{Bootstrap: asked, Recovery: &Recovery{Snapshot: true}}, EnvironmentAlone, false,
		},
	} {
		if got, alone := EnvironmentOf(c.view), FoundsCluster(c.view); got != c.want || alone != c.alone {
			t.Errorf("%s: environment %d, and others are asked: %t", name, got, alone)
		}
	}
}

func TestOnlyAHostThatRefusesConnectionsRunsNoEtcdForCertain(t *testing.T) {
	t.Parallel()
	refuses, answers := Endpoint{URL: "n1", Refuses: true, Error: "refused"}, Endpoint{URL: "n2"}
	mute := Endpoint{URL: "n3", Error: "no route"}
	for name, c := range map[string]struct {
		missing string
		others  []Endpoint
		says    string
	}{
		"there is no other":        {},
		"all refuse":               {others: []Endpoint{refuses, refuses}},
		"one answers":              {others: []Endpoint{refuses, answers}, says: "something answers at n2"},
		"one says nothing":         {others: []Endpoint{refuses, mute}, says: "whether a cluster runs at n3: no route"},
		"some may not be known":    {missing: "no answer", others: []Endpoint{refuses}, says: "may be: no answer"},
		"the first speaks for all": {others: []Endpoint{answers, mute}, says: "at n2"},
	} {
		r := AgainstFounding(c.missing, slices.Values(c.others))
		switch {
		case c.says == "" && r != nil, c.says != "" && r == nil:
			t.Errorf("%s: %+v", name, r)
		case r != nil && (r.Code != ClusterExists || r.Kind != Conflicts || !strings.Contains(r.Text, c.says)):
			t.Errorf("%s: %+v", name, r)
		}
	}
}
