// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// An applied plan is carried out even if operators have made another one meanwhile: its survivor may be off, and come
// back. Then two clusters would serve.

// planInForce finds a survivor of an earlier plan.
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

// planAbroad finds a plan that a host received and that its survivor is not known to have given up.
func planElsewhere(all []HostRemains, w RecoveryChoice) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if gaveUp(all, p) || slices.Contains(w.KeptOff, p.Survivor) {
				continue
			}
			text = fmt.Sprintf("%s received plan %s, by which %s continues alone, and nothing says that %s has "+
				"given it "+
				"up", r.Host, p.ID, p.Survivor, p.Survivor)
			return text, strings.Join(append(slices.Clone(w.KeptOff), p.Survivor), ",")
		}
	}
	return "", ""
}

// gaveUp reports whether the facts of a plan's survivor show that it no longer carries the plan out: they list it as
// given up, or do not list it and were collected after another host received it. Older facts may precede its
// application there. A host lists only its last two plans, so an older one is not listed even if it was given up.
func gaveUp(all []HostRemains, p KnownPlan) bool {
	return slices.ContainsFunc(all, func(o HostRemains) bool {
		ended := slices.ContainsFunc(o.Plans, func(q KnownPlan) bool { return q.ID == p.ID && q.GivenUp })
		return o.Host == p.Survivor && (ended || o.Age < p.Age)
	})
}
