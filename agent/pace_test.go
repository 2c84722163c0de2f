// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestHostsStartedTogetherDoNotAllReadTheWholeFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const there, more = 60, 30
		f := newFleet(t, there, smallPace())
		defer f.close()
		f.pass(time.Minute)
		for _, name := range []string{"v1", "v2", "v3"} { // so that no voter updates the queue and its number of hosts
			f.hosts[name].end()
		}
		before := f.etcd.count()
		for i := range more {
			f.add(fmt.Sprintf("n%02d", i), 0)
		}
		f.pass(10 * time.Second) // five rounds; each host reads all others in one of 60 or more
		read := 0
		for host, n := range f.since(before) {
			if strings.HasPrefix(host, "n") {
				read += n.records
			}
		}
		if read > there*more/3 {
			t.Errorf("%d new hosts read %d records", more, read)
		}
		t.Logf("%d records", read)
	})
}

func TestHostsStartedTogetherDriftApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const spares = 60
		f := newFleet(t, spares, smallPace())
		defer f.close()
		f.settled()
		// All hosts query at the same moment, which has to be in the middle of a counted round.
		f.pass(time.Until(time.Now().Truncate(2 * time.Second).Add(3 * time.Second)))
		most := 0
		for range 150 {
			before := f.etcd.count()
			f.pass(2 * time.Second)
			got, _ := f.spent(before)
			most = max(most, got.requests-got.renewed)
		}
		if most > 75 { // half of the rounds have 34 or more; a round in which all compare their clocks has 90 to 110
			t.Errorf("%d spares made %d requests in one round", spares, most)
		}
		t.Logf("at most %d requests in a round", most)
	})
}
