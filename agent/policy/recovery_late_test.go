// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAHostIsLateOnlyIfTheAnsweringClusterReplacesItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *Successor)
		late   bool
	}{
		"the answering cluster replaces this host's": {func(*Successor) {}, true},
		"no voter answers":                           {func(s *Successor) { s.Answers = 0 }, false},
		"another cluster answers":                    {func(s *Successor) { s.Answers = 9 }, false},
		"its own cluster answers": {
			func(s *Successor) { s.Answers = s.Old }, false,
		},
		"the answering cluster publishes no recovery": {
			func(s *Successor) { s.Old, s.New = 0, 0 }, false,
		},
		"no voter answers, and none publishes a recovery": {
			func(s *Successor) { s.Answers, s.New = 0, 0 }, false,
		},
		"the answering cluster replaces a different one": {func(s *Successor) { s.Old = 9 }, false},
		"the host belongs to no cluster":                 {func(s *Successor) { s.Noted = 0 }, false},
		"no recovery is published, and the host belongs to no cluster": {
			func(s *Successor) { s.Noted, s.Old = 0, 0 }, false,
		},
		"it belongs to the new cluster": {func(s *Successor) { s.Noted = s.New }, false},
		"a plan is in force": {
			func(s *Successor) { s.Planned = true }, false,
		},
		"the configuration names a cluster": {func(s *Successor) { s.Pinned = true }, false},
	} {
		s := Successor{Old: oldCluster, New: newCluster, Answers: newCluster, Noted: oldCluster}
		if c.change(&s); s.Late() != c.late {
			t.Errorf("%s: the host is late: %t", name, !c.late)
		}
	}
}
