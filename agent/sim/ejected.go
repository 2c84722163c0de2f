// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"
)

// takenOut is a host whose members were replaced: how often, and when the removal of the last was first sent.
type takenOut struct {
	times int
	at    time.Duration
}

// cleanFor is for how long it must be well before it joins again.
func (p *promises) cleanFor(times int) time.Duration {
	if times == 0 {
		return 0
	}
	return min(24*time.Hour, p.w.plan.Clean<<(min(times, 16)-1))
}

// longestClean is the longest that any host may have to wait for, were it taken out once more.
func (p *promises) longestClean() (longest time.Duration) {
	for _, o := range p.out {
		longest = max(longest, p.cleanFor(o.times+1))
	}
	return longest
}

// clean judges that a host which was taken out joins again. It may have read that it is to be taken out before the
// removal was sent: whoever removes it waits for a while until the others can spare it.
func (p *promises) clean(by *process) {
	o, was := p.out[by.host]
	early := p.w.plan.timing().LearnerStall + p.stale()
	if since := p.w.now() - o.at; was && since < p.cleanFor(o.times)-early {
		p.breach("P2", by.host, fmt.Sprintf("it joins %s after it was taken out, for the time number %d",
			since.Round(time.Second), o.times))
	}
}
