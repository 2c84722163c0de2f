// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// world is everything that is simulated. mu guards its fields and everything that they refer to, except for atomics.
type world struct {
	plan    plan
	keys    record.Keys
	mistake Mistake
	began   time.Time
	story   func(string) // nil: events are not printed

	mu           sync.Mutex
	hosts        []*host
	etcd         *etcd   // the cluster that serves or last served
	etcds        []*etcd // all clusters that ever existed
	recovery     disasterRecovery
	links        [][]link
	faults       *rand.Rand // used only by the goroutine that injects faults
	reserved     map[int64]bool
	activeFaults []*activeFault
	healed       bool // all faults have ended
	ended        bool
	promises     promises
	counts       counts
	trace        uint64 // sum of all events, so that their order does not matter
}

// counts are statistics of the simulation.
type counts struct {
	Faults, Rounds, Steps, Calls, Promoted, Elections, Transfers, Died, SlowForGood, Replaced, Changes int
	QuorumLosses, Recoveries, Resized, Retired, Lost, Recalled, Readdressed, Corrupted                 int
}

// lane separates the moments of concurrent goroutines. A moment in nanoseconds, modulo lanes, is the number of the
// lane that owns the moment, and all configured times are multiples of lanes. So no two goroutines act at the same
// moment, the order of events never depends on the scheduler, and a seed always yields the same events.
type lane int64

const (
	lanes       = 64
	lanesOfHost = 8 // the hosts' lanes precede the world's lanes
)

// The lanes of a host.
const (
	laneLoop lane = iota
	laneData
	laneVersion
	laneClock
	laneDiagnose
	laneStep
	laneOperator
	laneFile
)

// The lanes of the world.
const (
	laneFaults lane = lanes - 1 - iota
	laneEtcd
	laneLate
	laneWatchdog
	laneProbes
)

// now returns the time since the world began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// moment returns the first moment of a lane that is later than now and at least d from now.
func (w *world) moment(d time.Duration, l lane) time.Duration {
	at := int64(w.now() + max(0, d))
	at += (int64(l) - at%lanes + lanes) % lanes
	if at == int64(w.now()) {
		at += lanes
	}
	return time.Duration(at)
}

// wait lets virtual time pass until a moment.
func (w *world) wait(until time.Duration) {
	time.Sleep(until - w.now()) //nolint:forbidigo // virtual time: this is how it passes
}

// delay makes a goroutine outside an agent's loop wait for a few milliseconds, as if for a disk. Otherwise the
// scheduler would decide whether the loop sees the result in this round.
func (p *process) delay(l lane) {
	w := p.host.world
	w.wait(w.moment(between(w.draw(uint64(p.host.lane(l)), 27), time.Millisecond, 5*time.Millisecond), p.host.lane(l)))
	p.gate(l)
}

// delayNote delays a write to the agent's files from outside the agent's loop. The files have one writer at a time, and
// the order of the writers must not depend on the scheduler.
func (p *process) delayNote(what string) {
	w, l := p.host.world, p.host.lane(laneFile)
	about := []uint64{uint64(l), 28}
	for _, c := range []byte(what) {
		about = append(about, uint64(c))
	}
	w.wait(w.moment(between(w.draw(about...), time.Millisecond, 5*time.Millisecond), l))
	p.gate(laneFile)
}

// after calls do after a delay, with the world locked, at a moment that it shares with no other call.
func (w *world) after(d time.Duration, l lane, do func()) {
	at := int64(w.moment(d, l))
	for w.reserved[at] {
		at += lanes
	}
	w.reserved[at] = true
	time.AfterFunc(time.Duration(at)-w.now(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.reserved, at)
		if !w.ended {
			do()
		}
	})
}

// draw returns a random number that depends only on the seed, the time and the arguments.
func (w *world) draw(about ...uint64) uint64 {
	x := mix(w.plan.Seed, uint64(w.now()))
	for _, a := range about {
		x = mix(x, a)
	}
	return x
}

// mix applies the finalizer of SplitMix64 to two numbers.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// chance reports whether an event of that probability, in percent, occurs.
func chance(drawn uint64, percent uint64) bool { return drawn%100 < percent }

// between maps a drawn number to a duration.
func between(drawn uint64, low, high time.Duration) time.Duration {
	return low + time.Duration(drawn%uint64(high-low+1))
}

// event adds an event to the trace, and passes its text to Options.Story unless the text is empty or Story is nil.
func (w *world) event(who *host, what eventKind, number uint64, text string, args ...any) {
	id := uint64(lanes)
	if who != nil {
		id = uint64(who.index)
	}
	w.trace += mix(mix(uint64(w.now()), id<<8|uint64(what)), number)
	if w.story == nil || text == "" {
		return
	}
	name := "    "
	if who != nil {
		name = who.name + "  "
	}
	w.story(fmt.Sprintf("%s  %s%s", clock(w.now()), name, fmt.Sprintf(text, args...)))
}

// eventKind is the kind of an event in the trace.
type eventKind uint8

const (
	eventCall eventKind = iota
	eventEtcd
	eventFault
	eventUnit
	eventStep
	eventRound
)

// clock formats a moment as hours, minutes, seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d:%06.3f", int(d.Hours()), int(d.Minutes())%60, (d % time.Minute).Seconds())
}
