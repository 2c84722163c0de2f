// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestTheRowOfTheHostThatAnswersSaysWhatTheRestOfTheStatusSays(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Decision = policy.Decision{Role: policy.RoleVoter}
	r.Verdict = health.Verdict{State: health.Failed, Code: health.DiskFailed}
	r.View.Cluster.Reachable = true
	read := func() []control.HostRecord { // as the records were read last
		return []control.HostRecord{
			{ID: "1", Role: "joining", Health: "OK", Waiting: "HEALTH_BAD"},
			{ID: "2", Role: "spare", Health: "OK", Waiting: "SPACE_LOW"},
		}
	}
	hosts := read()
	ownRow(hosts, "1", r)
	if h := hosts[0]; h.Role != control.RoleVoter || h.Health != "FAILED" || h.HealthText != "DISK_FAILED" ||
		h.Waiting != "" {
		t.Errorf("its row says %+v", h)
	}
	if !reflect.DeepEqual(hosts[1], read()[1]) {
		t.Errorf("the row of another says %+v", hosts[1])
	}
	r.View.Cluster.Reachable, r.Decision.Role = false, policy.RoleUnknown
	hosts = read()
	ownRow(hosts, "1", r)
	if h := hosts[0]; h.Role != control.RoleJoining || h.Health != "FAILED" {
		t.Errorf("without a quorum its row says %+v, and not what was last known", h)
	}
}

// TestWhoSaysThatAMemberIsLostShowsItSo has one whose ports were found to answer until a moment ago.
func TestWhoSaysThatAMemberIsLostShowsItSo(t *testing.T) {
	t.Parallel()
	r := &round.Round{Sights: sight(network.Answers, time.Millisecond)}
	other := record.Host{ID: "2", Sees: []record.Sight{{Member: 10, Peer: "answers", Client: "answers"}}}
	shown := func() [2]bool {
		hosts := []control.HostRecord{{ID: "1"}, {ID: "2", Sees: sightsStatus(other.Sees)}}
		ownRow(hosts, "1", r)
		return [2]bool{hosts[0].Sees[0].Lost, hosts[1].Sees[0].Lost}
	}
	if got := shown(); got != [2]bool{} {
		t.Errorf("a member that answers is lost to %v", got)
	}
	r.Sights[0].Lost = true
	other.Sees[0].Lost = time.Unix(1, 0)
	if got := shown(); got != [2]bool{true, true} {
		t.Errorf("a member that is lost is so to %v", got)
	}
}
