// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/health"
)

// MaxMutes is the maximum number of mutes on a host.
const MaxMutes = 128

// AgainstMute returns why a finding may not be muted, or nil. check is the check that reports it, or nil if none does.
func AgainstMute(code health.Code, check *health.Check) *Refusal {
	switch {
	case check == nil:
		return &Refusal{NoSuch, "", "no check reports that finding", "quorumctl health lists the findings"}
	case check.Gates != health.Nothing:
		return conflicts("", "it "+check.Effect()+", and a finding that blocks a step cannot be muted",
			"quorumctl health "+string(code)+" shows the remedy")
	}
	return nil
}

// AgainstMoreMutes returns why no mute may be added to that many existing ones, or nil.
func AgainstMoreMutes(others int) *Refusal {
	if others < MaxMutes {
		return nil
	}
	return conflicts("", fmt.Sprintf("%d findings are muted already, which is the limit", others),
		"quorumctl health unmute ends one")
}
