// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
)

// RecoveryOf returns a plan in force as an API value.
func RecoveryOf(k *hoststate.Recovery) control.Recovery {
	shown := control.Recovery{
		Plan: k.Plan, Survivor: k.Survivor, Alone: k.Alone, Old: k.Old.String(), New: k.New.String(), By: k.By,
		Since: k.Since, GivenUp: k.GivenUp,
	}
	if k.Snapshot != nil {
		shown.Snapshot = k.Snapshot.String()
	}
	return shown
}

func (p *Publisher) recoveryStatus() (now *control.Recovery, end *control.RecoveryEnd) {
	k, last := p.files.Recoveries()
	if k != nil {
		shown := RecoveryOf(k)
		now = &shown
	}
	if last != nil {
		end = &control.RecoveryEnd{Recovery: RecoveryOf(&last.Recovery), Ended: last.Ended, Code: string(last.Code)}
	}
	return now, end
}
