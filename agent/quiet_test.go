// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// quietFleet returns a fleet without any activity.
func quietFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, 0, usualPace())
	f.until(10*time.Minute, "all is quiet", func() bool {
		for _, name := range []string{"v1", "v2", "v3"} {
			if r := f.hosts[name].agent.publisher.Current(); r == nil || !r.Decision.Quiet {
				return false
			}
		}
		return true
	})
	return f
}

func TestInAQuietClusterTheMembersAreQueriedEverySecondRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := quietFleet(t)
		defer f.close()
		a := f.hosts["v2"].agent
		var rounds, asked int
		var last uint64
		for began := time.Now(); time.Since(began) < time.Minute; f.pass(100 * time.Millisecond) {
			r := a.publisher.Current()
			if r.Number == last {
				continue
			}
			last = r.Number
			rounds++
			if r.Looked() {
				asked++
			}
			if r.HostsAt != r.At || !r.Listed {
				t.Errorf("round %d has not read the records", r.Number)
			}
			if age := r.At - r.StatusesAt; age > (policy.QuietRounds-1)*a.opt.Config.Timing.Interval+time.Second {
				t.Errorf("in round %d the members were queried %s ago", r.Number, age)
			}
		}
		if rounds < 25 || asked < rounds/policy.QuietRounds-1 || asked > rounds/policy.QuietRounds+1 {
			t.Errorf("in %d rounds the members were queried %d times", rounds, asked)
		}
	})
}

func TestASilentVoterInAQuietClusterIsDetectedAtMostOneRoundLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := quietFleet(t)
		defer f.close()
		interval := f.hosts["v1"].agent.opt.Config.Timing.Interval
		f.lose("v3")
		f.until(policy.QuietRounds*interval+time.Second, "v1 and v2 report it", func() bool {
			return f.hasReason("v1", policy.VoterNotLive) && f.hasReason("v2", policy.VoterNotLive)
		})
		f.pass(interval)
		if r := f.hosts["v1"].agent.publisher.Current(); r.Decision.Quiet || !r.Looked() {
			t.Errorf("while a voter is silent: quiet %v, queried %v", r.Decision.Quiet, r.Looked())
		}
	})
}

func TestARoundThatFindsAnOperationQueriesTheMembersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := quietFleet(t)
		defer f.close()
		f.ask("v1")
		found := false
		for began := time.Now(); !found && time.Since(began) < time.Minute; f.pass(10 * time.Millisecond) {
			r := f.hosts["v2"].agent.publisher.Current()
			if !r.Decision.Quiet && !r.Looked() {
				t.Fatalf("round %d is not quiet, and uses statuses from %s ago", r.Number, r.At-r.StatusesAt)
			}
			found = r.Op != nil
		}
		if !found {
			t.Error("the operation was never observed")
		}
	})
}
