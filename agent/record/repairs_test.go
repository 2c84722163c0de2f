// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTodayCountsTheRepairsOfADay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	listed := func(id MemberID) bool { return id == 17 } // member 17 was kept: its replacement was given up
	var none *Repairs
	if n := none.Today(now, listed); n != 0 {
		t.Errorf("%d repairs without any", n)
	}
	all := Repairs{}
	for i := range 20 {
		all = all.And(Repair{Time: now.Add(time.Duration(i-18) * 2 * time.Hour), Host: "n4", Member: MemberID(i + 1)})
	}
	b, err := Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode[Repairs](b)
	if err != nil || len(again.Last) != MaxRepairs || again.Last[15].Member != 20 {
		t.Errorf("read are %+v, %v", again, err)
	}
	// Ten of the repairs in the 24 hours before were not given up. The current one and one by a clock that is ahead
	// count too.
	if n := again.Today(now, listed); n != 12 {
		t.Errorf("%d in a day", n)
	}
	tried := again.And(Repair{Time: now, Host: "n5", Member: 18})
	if n := tried.Today(now, listed); n != 12 || tried.Last[15].Host != "n5" || again.Last[13].Host != "n4" {
		t.Errorf("a second try for the same member makes it %d: %+v", n, tried)
	}
	long := strings.Replace(string(b), `"last":[`, `"last":[`+strings.Repeat(`{"host":"x","member":"1"},`, 8), 1)
	if _, err := Decode[Repairs]([]byte(long)); err == nil || !strings.Contains(err.Error(), "24 repairs") {
		t.Errorf("24 repairs are read: %v", err)
	}
}

func TestEjectionsCountsTheReplacedMembersOfAHostWithin30Days(t *testing.T) {
	t.Parallel()
	const n3 = "http://192.0.2.3:2380"
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	at := func(days float64) time.Time { return now.Add(-time.Duration(days * 24 * float64(time.Hour))) }
	var none *Repairs
	if times, _ := none.Ejections("n3", n3, now); times != 0 {
		t.Errorf("%d ejections without any repair", times)
	}
	all := Repairs{}
	for _, one := range []Repair{
		{Time: at(31), Member: 1, PeerURL: n3}, // too old
		{Time: at(29), Member: 2, PeerURL: n3},
		{Time: at(3), Member: 4, PeerURL: "http://192.0.2.4:2380"},
		{Time: at(2), Member: 3, PeerURL: n3}, // tried, and given up
		{Time: at(1), Member: 5},              // written by an older agent
		{Time: at(0), Member: 3, PeerURL: n3}, // the same member again
	} {
		all = all.And(one)
	}
	b, err := Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode[Repairs](b)
	if err != nil {
		t.Fatal(err)
	}
	if times, last := again.Ejections("", n3, now); times != 2 || last.Member != 3 || !last.Time.Equal(now) {
		t.Errorf("%d ejections, last %+v", times, last)
	}
	if times, _ := again.Ejections("", "", now); times != 0 {
		t.Errorf("%d ejections of a host without a name and a peer URL", times)
	}
}

func TestEjectionsCountsAHostWhosePeerURLHasChanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	all := Repairs{}.And(Repair{Time: now, Member: 1, Dead: "n3", PeerURL: "http://192.0.2.3:2380"}).
		And(Repair{Time: now, Member: 2, Dead: "n4", PeerURL: "http://192.0.2.4:2380"}).
		And(Repair{Time: now, Member: 3, Dead: "", PeerURL: "http://192.0.2.5:2380"})
	for _, c := range []struct {
		name, url string
		want      int
	}{
		{"n3", "http://198.51.100.3:2380", 1},
		{"n3", "http://192.0.2.4:2380", 2}, // its new URL was another ejected host's
		{"n9", "http://192.0.2.5:2380", 1},
		{"n9", "http://192.0.2.9:2380", 0},
		{"", "", 0},
	} {
		if times, _ := all.Ejections(c.name, c.url, now); times != c.want {
			t.Errorf("%q at %q: %d ejections, not %d", c.name, c.url, times, c.want)
		}
	}
}

func TestLargestPossibleRepairsFitIntoMaxBytes(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", 512)
	all := Repairs{Extra: Extra{"more": []byte(`"` + strings.Repeat("x", 16_000) + `"`)}}
	for i := range MaxRepairs {
		all = all.And(Repair{
			Time: time.Date(9999, 1, 2, 3, 4, 5, 123456789, time.UTC), Member: math.MaxUint64 - MemberID(i),
			Host: full, Name: full, Dead: full, PeerURL: full,
		})
	}
	b, err := Encode(all)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Decode[Repairs](b); err != nil || len(again.Last) != MaxRepairs {
		t.Errorf("%d repairs were read: %v", len(again.Last), err)
	}
	all.Last[0].PeerURL += "x"
	if b, err := Encode(all); err == nil {
		t.Errorf("%d bytes with a URL over its bound were written", len(b))
	}
}
