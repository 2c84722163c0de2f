// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"
)

// ejection records how many times a host was ejected, and when its last removal was first sent.
type ejection struct {
	times int
	at    time.Duration
}

// cleanFor returns how long a host that was ejected this many times must be healthy before it joins again.
func (p *promises) cleanFor(times int) time.Duration {
	if times == 0 {
		return 0
	}
	return min(24*time.Hour, p.w.plan.CleanFor<<(min(times, 16)-1))
}

// longestClean returns the longest wait (cleanFor) that any host would have after one more ejection.
func (p *promises) longestClean() (longest time.Duration) {
	for _, o := range p.ejections {
		longest = max(longest, p.cleanFor(o.times+1))
	}
	return longest
}

// checkEjectedWait checks that an ejected host does not join again too early. The host's wait may begin before the
// removal is sent, because the removing agent first waits until the other voters can do without the member.
func (p *promises) checkEjectedWait(by *process) {
	o, was := p.ejections[by.host]
	early := p.w.plan.timing().LearnerStall + p.staleness()
	if since := p.w.now() - o.at; was && since < p.cleanFor(o.times)-early {
		p.breach("P2", by.host, fmt.Sprintf("it joins only %s after ejection number %d",
			since.Round(time.Second), o.times))
	}
}
