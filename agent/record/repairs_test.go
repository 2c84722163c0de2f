// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"
	"time"
)

func TestTheLastRepairsAreRememberedAndThoseOfADayAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	listed := func(id MemberID) bool { return id == 17 } // whose replacement was given up
	var none *Repairs
	if n := none.Today(now, listed); n != 0 {
		t.Errorf("%d repairs where there was none", n)
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
	// ten of the 24 hours before that were not given up, the one of now, and one by a clock that is ahead
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
