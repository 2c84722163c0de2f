// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// A plan that was applied somewhere is carried out there also when people have made another one meanwhile: the host
// that goes on alone by it may be off, and come back. Then two clusters would serve.

// planInForce finds a host that goes on alone by a plan that was made before.
func planInForce(all []Remains, _ RecoveryWish) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			if p.Survivor == r.Host && !p.GivenUp {
				return fmt.Sprintf("%s goes on alone by plan %s, which is in force there", r.Host, p.ID), r.Host
			}
		}
	}
	return "", ""
}

// planAbroad finds a plan that was told to a host, and of whose survivor nothing says that it has given it up.
func planAbroad(all []Remains, w RecoveryWish) (text, about string) {
	for _, r := range all {
		for _, p := range r.Plans {
			known := slices.ContainsFunc(all, func(o Remains) bool { return o.Host == p.Survivor })
			if known || slices.Contains(w.KeptOff, p.Survivor) {
				continue
			}
			text = fmt.Sprintf("%s was told plan %s, by which %s goes on alone, and nothing says that %s has given it "+
				"up", r.Host, p.ID, p.Survivor, p.Survivor)
			return text, strings.Join(append(slices.Clone(w.KeptOff), p.Survivor), ",")
		}
	}
	return "", ""
}
