// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/quorumd/quorumd/health"
)

// MaxMutes bounds the mutes of a host.
const MaxMutes = 128

// AgainstMute says why a finding is not to be muted, or gives nil. check is the one that may find it; nil: none does.
func AgainstMute(code health.Code, check *health.Check) *Refusal {
	switch {
	case check == nil:
		return &Refusal{NoSuch, "", "no check finds that", "quorumctl health shows what is found"}
	case check.Gates != health.Nothing:
		return conflicts("", "it "+check.Effect()+", and what keeps a step from happening is never muted",
			"quorumctl health "+string(code)+" says what to do about it")
	}
	return nil
}

// AgainstMoreMutes says why none is noted beside so many others, or gives nil.
func AgainstMoreMutes(others int) *Refusal {
	if others < MaxMutes {
		return nil
	}
	return conflicts("", fmt.Sprintf("%d are muted already, and no more may be", others),
		"quorumctl health unmute ends one")
}
