// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"math"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// votersWithFigures returns a round in which n1 reads its own record and those of the voters n2 and n3.
func votersWithFigures() *round.Round {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	r := &round.Round{}
	r.Reachable, r.Listed, r.HostsAt = true, true, 1
	for i, name := range []string{"n1", "n2", "n3"} {
		r.Membership.Members = append(r.Membership.Members, cluster.Member{ID: uint64(i + 1), Name: name})
		r.Hosts = append(r.Hosts, record.Host{
			ID: name, Name: name, Instance: name, MemberID: record.MemberID(i + 1), WriteP50: 0.001, WriteP90: 0.002,
			WriteTails: i, FiguresAt: at,
		})
	}
	return r
}

func TestTheOtherVotersFiguresAgeFromWhenTheyWereFirstObserved(t *testing.T) {
	t.Parallel()
	var p peerWrites
	r := votersWithFigures()
	first := p.read(r, "n1", 1, time.Hour)
	if !first.Known || first.Self != "n1" || len(first.All) != 2 {
		t.Fatalf("got %+v", first)
	}
	if n2 := first.All[0]; n2.Host != "n2" || n2.P50 != time.Millisecond || n2.Tails != 1 || n2.Age != 0 {
		t.Errorf("got %+v", n2)
	}
	r.Hosts[2].FiguresAt = r.Hosts[2].FiguresAt.Add(time.Second)
	later := p.read(r, "n1", 1, time.Hour+time.Minute)
	if later.All[0].Age != time.Minute || later.All[1].Age != 0 {
		t.Errorf("an unchanged measurement is %s old, a new one %s", later.All[0].Age, later.All[1].Age)
	}
	r.Reachable = false
	if unread := p.read(r, "n1", 1, time.Hour+2*time.Minute); !unread.Known || unread.All[0].Age != 2*time.Minute {
		t.Errorf("while the cluster does not answer: %+v", unread)
	}
}

func TestForgedRecordsAreBoundedAndNeverCountTwice(t *testing.T) {
	t.Parallel()
	var p peerWrites
	r := votersWithFigures()
	forged := r.Hosts[1]
	forged.ID, forged.Name, forged.WriteP50 = "x", "x", 0.5
	r.Hosts = append(r.Hosts, forged, record.Host{ID: "spare", Name: "spare", WriteP50: 1})
	got := p.read(r, "n1", 1, time.Hour)
	if len(got.All) != 2 || got.All[0].P50 != time.Millisecond || got.All[1].P50 != time.Millisecond {
		t.Errorf("two records claim one member: %+v", got.All)
	}
	r = votersWithFigures()
	r.Hosts[1].WriteP50, r.Hosts[1].WriteP90, r.Hosts[1].WriteTails = math.Inf(1), math.NaN(), math.MaxInt
	r.Hosts[2].WriteP50, r.Hosts[2].WriteP90, r.Hosts[2].WriteTails = -1, math.MaxFloat64, math.MinInt
	for _, one := range p.read(r, "n1", 1, time.Hour).All {
		if one.P50 < 0 || one.P50 > time.Hour || one.P90 > time.Hour || one.Tails < 0 || one.Tails > mostTails {
			t.Errorf("got %+v", one)
		}
	}
}

func TestASecondRecordForAMemberNeitherSilencesTheFirstNorDisplacesIt(t *testing.T) {
	t.Parallel()
	var p peerWrites
	r := votersWithFigures()
	p.read(r, "n1", 1, time.Hour)
	second := r.Hosts[1]
	second.ID, second.WriteP50 = "x", 0.5 // even with the member's name
	r.Hosts = append([]record.Host{second}, r.Hosts...)
	if got := p.read(r, "n1", 1, time.Hour+time.Minute).All[0]; got.P50 != time.Millisecond || got.Age != time.Minute {
		t.Errorf("the first record counts as %+v", got)
	}
	r.Hosts = append(r.Hosts[:2:2], r.Hosts[3]) // the first record has expired
	if got := p.read(r, "n1", 1, time.Hour+2*time.Minute).All[0]; got.P50 != 500*time.Millisecond || got.Age != 0 {
		t.Errorf("the second record counts as %+v", got)
	}
}
