// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package diskrecord

import (
	"math"
	"time"

	"github.com/quorumd/quorumd/health"
)

// p99Every is the minimum interval between two changes of the published p99 in the same health state. The p99 serves to
// rank hosts, and the p99 of a busy disk changes from minute to minute.
const p99Every = 4 * time.Hour

// fsyncP99 is the disk's p99, as last published.
type fsyncP99 struct {
	level float64 // seconds; 0 if none is published
	at    time.Duration
	state health.State // the health state when level was published
}

// steady returns the p99 to publish. It keeps the last value unless the disk has become clearly faster or slower and
// the last change is at least p99Every old. After a change of the health state, it does not wait, because a SLOW disk
// would otherwise show the p99 from before it became SLOW. A disk that was not measured keeps its last p99.
func (p *fsyncP99) steady(now, p99 time.Duration, state health.State) float64 {
	level := Octave(p99)
	soon := p.level != 0 && state == p.state && now-p.at < p99Every
	if level == 0 || p.near(p99) || soon {
		return p.level
	}
	p.level, p.at, p.state = level, now, state
	return level
}

// near reports whether a p99 is in the range of the published level, or so close that chance explains it.
func (p *fsyncP99) near(p99 time.Duration) bool {
	return p99.Seconds() > p.level/2*0.65 && p99.Seconds() <= p.level*1.5
}

// Octave returns a duration in seconds, rounded up to 0.125 ms times a power of two; 0 if it is unknown.
func Octave(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	step := 125 * time.Microsecond
	for step < d && step < math.MaxInt64/2 {
		step *= 2
	}
	return step.Seconds()
}

// NearOctave reports whether a duration is in the range that rounds up to this level, extended by a quarter of each
// bound.
func NearOctave(d time.Duration, level float64) bool {
	return d.Seconds() > level/2*0.75 && d.Seconds() <= level*1.25
}
