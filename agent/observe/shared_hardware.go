// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// sharedReading returns the hardware on which the other voters run, from their hosts' records. Each member counts once,
// so that a host cannot claim another host's member.
func sharedReading(r *round.Round, own config.Host, bootID string) health.SharedReading {
	switch {
	case own.AllowSharedHardware:
		return health.SharedReading{Absent: "host.allowSharedHardware is set"}
	case !r.Listed || r.HostsAt == 0:
		return health.SharedReading{Absent: "the other hosts' records have not been read"}
	}
	out := health.SharedReading{Known: true}
	counted := map[uint64]bool{}
	for _, h := range r.Hosts {
		m, listed := r.Membership.ByID(uint64(h.MemberID))
		if !listed || m.Learner || h.ID == own.ID || counted[m.ID] {
			continue
		}
		counted[m.ID] = true
		out.Voters = append(out.Voters, health.Placement{
			Host: h.Name, SameMachine: h.BootID == bootID, Disks: h.Disks[:min(len(h.Disks), health.MaxDisks)],
		})
	}
	return out
}
