// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"
)

// ejected records an ejected host: how often it was ejected, and when its last removal was first sent.
type ejected struct {
	times int
	at    time.Duration
}

// cleanFor returns how long the host must be healthy before it joins again.
func (p *promises) cleanFor(times int) time.Duration {
	if times == 0 {
		return 0
	}
	return min(24*time.Hour, p.w.plan.Clean<<(min(times, 16)-1))
}

// longestClean returns the longest such wait of any host if it were ejected once more.
func (p *promises) longestClean() (longest time.Duration) {
	for _, o := range p.out {
		longest = max(longest, p.cleanFor(o.times+1))
	}
	return longest
}

// clean checks that an ejected host does not rejoin early. The host may have read of its removal before that was sent,
// since the remover waits for a while until the others can spare the member.
func (p *promises) clean(by *process) {
	o, was := p.out[by.host]
	early := p.w.plan.timing().LearnerStall + p.stale()
	if since := p.w.now() - o.at; was && since < p.cleanFor(o.times)-early {
		p.breach("P2", by.host, fmt.Sprintf("it joins %s after it was ejected, ejection number %d",
			since.Round(time.Second), o.times))
	}
}
