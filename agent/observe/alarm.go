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

// mostAlarms is the maximum number of alarms that a message names.
const mostAlarms = 3

// alarmsOf reports whether the database is intact (no answering member lists a CORRUPT alarm) and roomy (none lists a
// NOSPACE alarm), and returns a message that names the members that raised the alarms. Each member lists all active
// alarms, such as "memberID:9372538179322589801 alarm:NOSPACE".
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
			raised[fmt.Sprintf("%s raised the alarm %s", raiser(r, head), alarm)] = true
		}
	}
	all := slices.Sorted(maps.Keys(raised))
	return intact, roomy, strings.Join(all[:min(len(all), mostAlarms)], ", ")
}

// raiser returns the name of the member that raised an alarm.
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
