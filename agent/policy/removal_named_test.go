// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

func TestAMemberIsIdentifiedByNameOrIDAndNeverGuessed(t *testing.T) {
	t.Parallel()
	v := View{Cluster: Cluster{Members: []Member{
		{ID: 0xa1, Name: "n1"}, {ID: 0xa2, Name: "twin"}, {ID: 0xa3, Name: "twin"}, {ID: 0xa4},
	}}}
	for name, c := range map[string]struct {
		id      uint64
		removed bool
		refusal string
	}{
		"n1":   {id: 0xa1},
		"a1":   {id: 0xa1},
		"a3":   {id: 0xa3},
		"a4":   {id: 0xa4},
		"n9":   {refusal: "no member has that name or ID"},
		"n8":   {removed: true},
		"":     {refusal: "no member has that name or ID"},
		"twin": {removed: true, refusal: "several members have that name"},
	} {
		m, r := MemberNamed(v, name, c.removed)
		switch {
		case m.ID != c.id || (r == nil) != (c.refusal == ""):
			t.Errorf("%q: member %x, %+v", name, m.ID, r)
		case r != nil && (r.Kind != NoSuch || !strings.Contains(r.Text, c.refusal) ||
			!strings.Contains(r.Hint, "n1 (a1), twin (a2), twin (a3), never started (a4)")):
			t.Errorf("%q: %+v", name, r)
		}
	}
}
