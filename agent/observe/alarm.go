// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/agent/round"
)

// mostAlarms bounds those that people are told of.
const mostAlarms = 3

// alarmsOf gives whether no member that has answered names the alarm CORRUPT, or NOSPACE, and who has raised them. Each
// member names all that stand, as "memberID:9372538179322589801 alarm:NOSPACE".
func alarmsOf(r *round.Round) (intact, roomy bool, text string) {
	intact, roomy = true, true
	raised := map[string]bool{}
	for _, s := range r.Statuses {
		for _, word := range s.Errors {
			head, alarm, found := strings.Cut(word, "alarm:")
			alarm = strings.TrimSpace(alarm)
			switch {
			case found && alarm == "CORRUPT":
				intact = false
			case found && alarm == "NOSPACE":
				roomy = false
			default:
				continue
			}
			raised[fmt.Sprintf("%s has raised the alarm %s", raiser(r, head), alarm)] = true
		}
	}
	all := slices.Sorted(maps.Keys(raised))
	return intact, roomy, strings.Join(all[:min(len(all), mostAlarms)], ", ")
}

// raiser names the member of an alarm.
func raiser(r *round.Round, head string) string {
	id, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(head, "memberID:")), 10, 64)
	if err != nil {
		return "a member"
	}
	if m, listed := r.Membership.ByID(id); listed && m.Name != "" {
		return m.Name
	}
	return fmt.Sprintf("member %x", id)
}
