// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// largeHost returns a record in which the fields that a status lists have about their maximum size.
func largeHost(i int) record.Host {
	name := strings.Repeat("\x01", 80)
	h := record.Host{
		ID: fmt.Sprintf("%032x", i), Name: fmt.Sprintf("h%05d", i), Domain: name, BootID: name, ClientURL: name,
		PeerURL: name, Mode: name, AgentVersion: name, EtcdVersion: name, Role: "spare", Health: "OK",
		HealthText: strings.Repeat("é", 2000), Waiting: name,
		Extra: record.Extra{"pad": json.RawMessage(`"` + strings.Repeat("x", 5<<10) + `"`)},
	}
	for m := range record.MaxReachability {
		h.Sees = append(h.Sees, record.Reachability{
			MemberID: record.MemberID(m), Peer: record.PortState(strings.Repeat("p", 32)),
			Client: "\x01\x01\x01\x01\x01",
			Link:   record.LinkNone, LostSince: time.Unix(1, 1e6).UTC(), RTTSeconds: 0.000125,
		})
	}
	return h
}

// TestAStatusOfThousandsOfLargeRecordsIsBounded uses 4,000 valid records of 15 KiB. Without a bound, the status would
// be too large for any client. The most important hosts must be listed, wherever their records are among the others.
func TestAStatusOfThousandsOfLargeRecordsIsBounded(t *testing.T) {
	t.Parallel()
	value, err := record.Encode(largeHost(0))
	if err != nil || len(value) < 14<<10 {
		t.Fatalf("a record has %d bytes (%v): this test needs large ones", len(value), err)
	}
	if _, err := record.Decode[record.Host](value); err != nil {
		t.Fatalf("not a valid record: %v", err)
	}
	r := &round.Round{}
	r.Lock = &record.Lock{Host: fmt.Sprintf("%032x", 2500)}
	r.View.Cluster.Members = []policy.Member{{ID: 7, Name: "h03999"}}
	for i := range 4000 {
		h := largeHost(i)
		switch i {
		case 3000: // claims the member of another host
			h.MemberID = 7
		case 3999:
			h.MemberID = 7
		case 3500, 3501:
			h.Health = health.Slow.String()
		}
		r.Hosts = append(r.Hosts, h)
	}
	own := fmt.Sprintf("%032x", 1234)
	hosts, omitted := boundHosts(hostsStatus(r, 1, time.Minute), own, r)
	text, err := json.Marshal(hosts)
	if err != nil || len(text) > control.MaxHostBytes {
		t.Errorf("%d hosts take %d bytes (%v), the limit is %d", len(hosts), len(text), err, control.MaxHostBytes)
	}
	if omitted == nil || omitted.Hosts != 4000-len(hosts) || omitted.NotOK != 0 || len(hosts) < 100 {
		t.Errorf("%d hosts are listed and %+v omitted", len(hosts), omitted)
	}
	for _, i := range []int{1234, 2500, 3000, 3500, 3501, 3999} {
		id := fmt.Sprintf("%032x", i)
		if !slices.ContainsFunc(hosts, func(h control.HostRecord) bool { return h.ID == id }) {
			t.Errorf("host %d is not listed", i)
		}
	}
	if !slices.IsSortedFunc(hosts, func(a, b control.HostRecord) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the hosts are not in their original order")
	}
}

func TestMoreHostsThanAStatusListsAreCounted(t *testing.T) {
	t.Parallel()
	var all []control.HostRecord
	for i := range control.MaxHosts + 10 {
		all = append(all, control.HostRecord{ID: fmt.Sprint(i), Health: "FAILED"})
	}
	hosts, omitted := boundHosts(all, "", &round.Round{})
	if len(hosts) != control.MaxHosts || omitted == nil || *omitted != (control.Omitted{Hosts: 10, NotOK: 10}) {
		t.Errorf("%d hosts, omitted %+v", len(hosts), omitted)
	}
	all = all[:control.MaxHosts]
	if hosts, omitted = boundHosts(all, "", &round.Round{}); len(hosts) != len(all) || omitted != nil {
		t.Errorf("of %d hosts %d are listed, omitted %+v", len(all), len(hosts), omitted)
	}
}
