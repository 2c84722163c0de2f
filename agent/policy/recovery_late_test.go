// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAHostIsLateOnlyWhereTheClusterThatAnswersTakesThePlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *Successor)
		late   bool
	}{
		"it does":                       {func(*Successor) {}, true},
		"nobody answers":                {func(s *Successor) { s.Answers = 0 }, false},
		"another cluster answers":       {func(s *Successor) { s.Answers = 9 }, false},
		"its own answers":               {func(s *Successor) { s.Answers = s.Old }, false},
		"it says nothing":               {func(s *Successor) { s.Old, s.New = 0, 0 }, false},
		"nobody answers, nor says so":   {func(s *Successor) { s.Answers, s.New = 0, 0 }, false},
		"it follows another":            {func(s *Successor) { s.Old = 9 }, false},
		"the host belongs to none":      {func(s *Successor) { s.Noted = 0 }, false},
		"it belongs to none, as is old": {func(s *Successor) { s.Noted, s.Old = 0, 0 }, false},
		"it belongs to the new one":     {func(s *Successor) { s.Noted = s.New }, false},
		"a plan is in force":            {func(s *Successor) { s.Planned = true }, false},
		"the configuration names one":   {func(s *Successor) { s.Pinned = true }, false},
	} {
		s := Successor{Old: oldCluster, New: newCluster, Answers: newCluster, Noted: oldCluster}
		if c.change(&s); s.Late() != c.late {
			t.Errorf("%s: the host is late: %t", name, !c.late)
		}
	}
}
