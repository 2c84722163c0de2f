// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
)

func TestARemedyNamesTheUnitOfThisHost(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Etcd.Runner, c.Etcd.Unit = "systemd", "etcd@events.service"
	p := &Publisher{opt: Options{Config: c}}
	for code, want := range map[policy.ReasonCode]string{
		policy.UnitStopped:  "to run it again: systemctl start etcd@events.service",
		policy.UnitDisabled: "systemctl enable etcd@events.service",
		policy.UnitBusy:     "if it is not needed: systemctl disable --now etcd@events.service",
	} {
		if got := p.remedy(&round.Round{}, code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
