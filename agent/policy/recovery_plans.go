// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A plan that was applied somewhere is carried out there also when people have made another one meanwhile: the host
// that continues alone by it may be off, and come back. Then two clusters would serve.

// planInForce finds a host that continues alone by a plan that was made before.
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

// planAbroad finds a plan that was told to a host, and of whose survivor nothing says that it has given it up.
func planAbroad(all []HostRemains, w RecoveryChoice) (text, about string) {
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

// gaveUp tells whether the facts of a plan's survivor show that it does not carry the plan out any more: they name it
// as given up, or do not name it and were taken after another host was told. Older ones may be of before it was applied
// there. A host tells of the last two plans only, so that an older one is not named though it was given up.
func gaveUp(all []HostRemains, p KnownPlan) bool {
	return slices.ContainsFunc(all, func(o HostRemains) bool {
		ended := slices.ContainsFunc(o.Plans, func(q KnownPlan) bool { return q.ID == p.ID && q.GivenUp })
		return o.Host == p.Survivor && (ended || o.Age < p.Age)
	})
}
