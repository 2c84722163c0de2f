// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/record"
)

func sight(state network.State, rtt time.Duration) []network.Sight {
	way := network.Way{State: state, RTT: rtt}
	return []network.Sight{{Member: 10, Name: "n1", Peer: way, Client: way}}
}

// writes counts what changes in an hour of looks each second at a network.
func writes(of func(second int) []network.Sight) (n int) {
	var s sights
	var before []record.Sight
	for second := range 3600 {
		now := s.steady(time.Duration(second)*time.Second, network.Every, of(second))
		if !reflect.DeepEqual(now, before) {
			n++
		}
		before = now
	}
	return n
}

func TestANetworkThatStaysTheSameIsWrittenOnceAndOneThatNeverDoesOnceAMinute(t *testing.T) {
	t.Parallel()
	steady := func(second int) []network.Sight {
		if second < 5 {
			return sight(network.Unknown, 0)
		}
		return sight(network.Answers, time.Duration(180+second%70)*time.Microsecond)
	}
	if n := writes(steady); n != 1 {
		t.Errorf("a network that stays the same is written %d times in an hour", n)
	}
	noisy := func(second int) []network.Sight {
		return sight(network.Answers+network.State(second%2*2), time.Duration(second%9+1)*time.Millisecond)
	}
	if n := writes(noisy); n < 2 || n > 60 {
		t.Errorf("a network that never stays the same is written %d times in an hour", n)
	}
	joined := func(second int) []network.Sight {
		of := network.State(min(second/5, 1))
		both := append(sight(network.Answers, time.Millisecond), sight(of, time.Millisecond)...)
		both[1].Member = 11
		return both[:min(second/2, 2)]
	}
	if n := writes(joined); n != 2 {
		t.Errorf("a second member that was looked at is written %d times", n)
	}
	slower := func(second int) []network.Sight {
		return sight(network.Answers, time.Duration(second%9+1)*time.Millisecond)
	}
	if n := writes(slower); n < 2 || n > 6 {
		t.Errorf("one of which the time alone changes is written %d times in an hour", n)
	}
}

func TestWhatIsPublishedOfAMemberIsHowItsPortsAreAndATimeRoundedUp(t *testing.T) {
	t.Parallel()
	var s sights
	got := s.steady(time.Hour, network.Every, []network.Sight{{
		Member: 10, Name: "n1", Peer: network.Way{State: network.LargeLost, RTT: 300 * time.Microsecond},
		Client: network.Way{State: network.Unreachable},
	}})
	want := []record.Sight{{Member: 10, Peer: "large-lost", Client: "unreachable", RTT: 0.0005}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v", got)
	}
	encoded, err := record.Encode(record.Host{Sees: got})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := record.Decode[record.Host](encoded); err != nil || !reflect.DeepEqual(back.Sees, want) {
		t.Errorf("read again it is %+v, %v", back.Sees, err)
	}
}
