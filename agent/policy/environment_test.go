// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAClusterIsBootstrappedOnlyOnRequestAndWhileNoneAnswers(t *testing.T) {
	t.Parallel()
	asked := Bootstrap{Requested: true}
	for name, c := range map[string]struct {
		view  View
		want  Environment
		alone bool
	}{
		"there is no request":                        {View{}, EnvironmentListed, false},
		"there is no request, and a cluster answers": {View{Cluster: Cluster{Listed: true}}, EnvironmentListed, false},
		"a bootstrap is requested":                   {View{Bootstrap: asked}, EnvironmentNew, true},
		"a cluster answers, and cannot be read yet": {
			View{Bootstrap: asked, Cluster: Cluster{Listed: true}}, EnvironmentNew, false,
		},
		"a cluster answers": {
			View{Bootstrap: asked, Cluster: Cluster{Listed: true, Reachable: true}}, EnvironmentListed, false,
		},
		"the host continues alone with its own data": {
			View{Recovery: &Recovery{Survivor: true}}, EnvironmentListed, false,
		},
		"it continues with a snapshot": {
			View{Recovery: &Recovery{Snapshot: true}}, EnvironmentAlone, false,
		},
		// a host with a pending bootstrap request may be the survivor of a recovery
		"it continues with a snapshot, and a bootstrap was requested": {
			View{Bootstrap: asked, Recovery: &Recovery{Snapshot: true}}, EnvironmentAlone, false,
		},
	} {
		if got, alone := EnvironmentOf(c.view), MakesNewCluster(c.view); got != c.want || alone != c.alone {
			t.Errorf("%s: environment %d, and other hosts are asked: %t", name, got, alone)
		}
	}
}

func TestOnlyAHostThatRefusesConnectionsCertainlyRunsNoEtcd(t *testing.T) {
	t.Parallel()
	refused, mute := errors.New("refused"), errors.New("no route")
	for name, c := range map[string]struct {
		missing error
		meets   []error
		says    string
	}{
		"there is no other endpoint": {},
		"all refuse":                 {meets: []error{refused, refused}},
		"a cluster answers":          {meets: []error{refused, nil}, says: "something answers at n1"},
		"one does not answer": {
			meets: []error{refused, mute}, says: "whether a cluster runs at n1: no route",
		},
		"some may be unknown": {
			missing: mute, meets: []error{refused}, says: "may be missing: no route",
		},
		"the first one accepts the connection": {meets: []error{nil, mute}, says: "at n0"},
	} {
		asked := 0
		others := func(yield func(string, error) bool) {
			for i, err := range c.meets {
				if asked++; !yield(fmt.Sprintf("n%d", i), err) {
					return
				}
			}
		}
		r := AgainstAutomaticBootstrap(others, c.missing, func(err error) bool { return errors.Is(err, refused) })
		switch {
		case c.says == "" && (r != nil || asked != len(c.meets)), c.says != "" && r == nil:
			t.Errorf("%s: %+v after %d of %d", name, r, asked, len(c.meets))
		case r != nil && (r.Code != ClusterExists || r.Kind != Conflicts || !strings.Contains(r.Text, c.says)):
			t.Errorf("%s: %+v", name, r)
		}
	}
}
