// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A host carries out a plan that it has applied even if operators make another plan meanwhile. If the first plan's
// survivor was only off and comes back, two clusters serve.

// planInForce reports a host that is the survivor of an earlier plan and has not given it up.
func planInForce(all []HostRemains, _ RecoveryChoice) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if p.Survivor == r.Host && !p.GivenUp {
				return fmt.Sprintf("%s continues alone by plan %s, which is in force there", r.Host, p.ID), r.Host
			}
		}
	}
	return "", ""
}

// planElsewhere reports a plan that a host received and that the plan's survivor is not known to have given up.
func planElsewhere(all []HostRemains, w RecoveryChoice) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if gaveUp(all, p) || slices.Contains(w.KeptOff, p.Survivor) {
				continue
			}
			text = fmt.Sprintf("%s received plan %s, by which %s continues alone, and %s is not known to have given "+
				"it up", r.Host, p.ID, p.Survivor, p.Survivor)
			return text, strings.Join(append(slices.Clone(w.KeptOff), p.Survivor), ",")
		}
	}
	return "", ""
}

// gaveUp reports whether the facts of a plan's survivor show that it does not carry the plan out: they list the plan as
// given up, or they were collected after another host received the plan. Older facts may precede its application on the
// survivor. A host lists only its last two plans, so an older plan is missing even if it was given up.
func gaveUp(all []HostRemains, p KnownPlan) bool {
	return slices.ContainsFunc(all, func(o HostRemains) bool {
		ended := slices.ContainsFunc(o.Plans, func(q KnownPlan) bool { return q.ID == p.ID && q.GivenUp })
		return o.Host == p.Survivor && (ended || o.Age < p.Age)
	})
}
