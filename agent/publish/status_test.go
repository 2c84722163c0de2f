// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

func TestTheRowOfTheAnsweringHostAgreesWithTheStatus(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Decision = policy.Decision{Role: policy.RoleVoter}
	r.Assessment = health.Assessment{State: health.Failed, Code: health.DiskFailed}
	r.View.Cluster.Reachable = true
	read := func() []control.HostRecord { // as the records were last read
		return []control.HostRecord{
			{ID: "1", Role: "joining", Health: "OK", Waiting: "HEALTH_BAD"},
			{ID: "2", Role: "spare", Health: "OK", Waiting: "SPACE_LOW"},
		}
	}
	hosts := read()
	ownRow(hosts, "1", r)
	if h := hosts[0]; h.Role != policy.RoleVoter || h.Health != "FAILED" || h.HealthText != "DISK_FAILED" ||
		h.Waiting != "" {
		t.Errorf("its row says %+v", h)
	}
	if !reflect.DeepEqual(hosts[1], read()[1]) {
		t.Errorf("the row of another says %+v", hosts[1])
	}
	r.View.Cluster.Reachable, r.Decision.Role = false, policy.RoleUnknown
	hosts = read()
	ownRow(hosts, "1", r)
	if h := hosts[0]; h.Role != policy.RoleJoining || h.Health != "FAILED" {
		t.Errorf("without a quorum its row says %+v, and not what was last known", h)
	}
}

func TestAHostWasLastSeenWhenItsMemberLastAnswered(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Hosts = []record.Host{
		{ID: "1", MemberID: 10}, {ID: "2", MemberID: 20}, {ID: "3"},
	}
	r.View.Cluster = policy.Cluster{Reachable: true, Members: []policy.Member{{ID: 10, Live: true}, {ID: 20}}}
	for down, want := range map[time.Duration]float64{46 * time.Second: 46, time.Hour: 60} {
		r.View.Cluster.Members[1].DownFor = down
		hosts := hostsStatus(r, 1, time.Minute)
		if hosts[0].SilentSeconds != nil || hosts[2].SilentSeconds != nil {
			t.Errorf("a host that answers, and one without a member: %+v", hosts)
		}
		if got := hosts[1].SilentSeconds; got == nil || *got != want {
			t.Errorf("after %s: silent for %v s, want %v", down, got, want)
		}
		if got := display.LastSeen(hosts[1]); got != "≤ "+display.Span(time.Duration(want)*time.Second) {
			t.Errorf("after %s it shows %q", down, got)
		}
	}
}

func TestAHostWithoutAMemberWasLastSeenWhenItRenewedItsRecord(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Hosts = []record.Host{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4", MemberID: 40}}
	r.View.Cluster = policy.Cluster{Reachable: true, Members: []policy.Member{{ID: 40, Live: true}}}
	r.Renewals = round.HostState[map[string]time.Duration]{
		OK: true, Age: 6 * time.Second,
		Value: map[string]time.Duration{
			"1": 21 * time.Second, "2": 40 * time.Second, "4": 50 * time.Second,
		},
	}
	hosts := hostsStatus(r, 1, time.Minute)
	for i, want := range []string{"1s", "≤ 46s", "1s", "1s"} {
		if got := display.LastSeen(hosts[i]); got != want {
			t.Errorf("host %s was last seen %q ago, want %q", hosts[i].ID, got, want)
		}
	}
	r.Renewals.OK = false
	if h := hostsStatus(r, 1, time.Minute)[1]; h.SilentSeconds != nil {
		t.Errorf("by an answer that is too old: %+v", h)
	}
}

// After a recovery the records of lost hosts reappear with etcd's data, and their leases start over.
func TestARecordOfAnUnlistedMemberIsNoVoterAndNotOK(t *testing.T) {
	t.Parallel()
	r := &round.Round{}
	r.Hosts = []record.Host{
		{ID: "1", MemberID: 10, Role: "voter", Health: "OK"},
		{ID: "2", MemberID: 20, Role: "voter", Health: "OK"},
		{ID: "3", Role: "spare", Health: "OK"},
		{ID: "4", MemberID: 40, Role: "voter", Health: "OK"},
	}
	r.View.Cluster = policy.Cluster{Reachable: true, Members: []policy.Member{{ID: 10, Live: true}}}
	hosts := hostsStatus(r, 1, time.Minute)
	if markFormer(hosts, "4", r); hosts[1].Role != policy.RoleVoter {
		t.Errorf("while the members are not known: %+v", hosts[1])
	}
	r.Listed, r.Membership.Members = true, []cluster.Member{{ID: 10}}
	markFormer(hosts, "4", r)
	for i, former := range []bool{false, true, false, false} { // the last one is the host that answers
		if hosts[i].Former != former || (hosts[i].Health == "OK") == former {
			t.Errorf("host %d: %+v", i+1, hosts[i])
		}
	}
	if h := hosts[1]; h.Role != policy.RoleUnknown || h.AgeSeconds != nil || display.LastSeen(h) != "-" ||
		display.RoleOf(h, control.Member{}, false).Text != "unknown" {
		t.Errorf("the host that is gone: %+v, last seen %s", h, display.LastSeen(h))
	}
}

// TestAMemberReportedAsLostIsShownAsLost checks a member whose ports answered until a moment ago.
func TestAMemberReportedAsLostIsShownAsLost(t *testing.T) {
	t.Parallel()
	r := &round.Round{Wall: time.Unix(1, 0), Probes: probed(record.PortAnswers, time.Millisecond)}
	other := record.Host{ID: "2", Sees: []record.Reachability{{MemberID: 10, Peer: "answers", Client: "answers"}}}
	shown := func() [2]bool {
		hosts := []control.HostRecord{{ID: "1"}, {ID: "2", Sees: other.Sees}}
		ownRow(hosts, "1", r)
		return [2]bool{!hosts[0].Sees[0].LostSince.IsZero(), !hosts[1].Sees[0].LostSince.IsZero()}
	}
	if got := shown(); got != [2]bool{} {
		t.Errorf("a member that answers is lost to %v", got)
	}
	r.Probes[0].Lost = true
	other.Sees[0].LostSince = time.Unix(1, 0)
	if got := shown(); got != [2]bool{true, true} {
		t.Errorf("a member that is lost is so to %v", got)
	}
}
