// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"
)

func TestARestingHostReadsRarelyWhileAHostKeepsTheQueue(t *testing.T) {
	t.Parallel()
	p := pace{interval: 2 * time.Second, host: "h", limits: UsualPace()}
	p.learn(0, 10000)
	if p.guide(0, true); p.hosts <= 2000*time.Second {
		t.Errorf("it reads in %s, as if no host kept the queue", p.hosts) // a pseudorandom time, the same in every run
	}
	if got, want := p.round(), 20000*time.Second; got != want { // all hosts together read 5000 records a second
		t.Errorf("it reads every %s, want %s", got, want)
	}
	p.asked(0, look{etcd: true, hosts: true})
	const gone = time.Minute
	if p.guide(gone, false); p.hosts > gone+2000*time.Second {
		t.Errorf("it reads %s after the queue is gone, want within 2000 s", p.hosts-gone)
	}
	p.guide(gone, true)
	if p.attend(gone, true); p.hosts != gone || p.round() != 50*time.Second {
		t.Errorf("called at %s, it reads at %s and then every %s", gone, p.hosts, p.round())
	}
}
