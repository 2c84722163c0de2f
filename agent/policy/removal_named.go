// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"
)

// MemberNamed returns the member that matches a name or an ID, or a refusal if the name is ambiguous or unknown.
// removed reports that this host has already removed a member with that name: then an unknown name is no error, and
// MemberNamed returns no member.
func MemberNamed(v View, name string, removed bool) (Member, *Refusal) {
	var found []Member
	var names []string
	for _, m := range v.Cluster.Members {
		id := fmt.Sprintf("%x", m.ID)
		names = append(names, fmt.Sprintf("%s (%s)", cmp.Or(m.Name, "never started"), id))
		if id == name || m.Name != "" && m.Name == name {
			found = append(found, m)
		}
	}
	there := "the members are " + strings.Join(names, ", ")
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Member{}, &Refusal{NoSuch, "", "several members have that name", "name one by its ID: " + there}
	case removed:
		return Member{}, nil
	}
	return Member{}, &Refusal{NoSuch, "", "no member has that name or ID", there}
}
