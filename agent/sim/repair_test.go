// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// replaces makes voters die and become unhealthy, so that others replace them, while operators change peer URLs.
func replaces(p *plan) {
	p.LostAt, p.FaultInterval, p.Hosts, p.Voters = 0, 6*time.Minute, 5, 3
	p.Dead, p.Unhealthy, p.PerDay, p.Readdresses, p.Corrupts = 5*time.Minute, 5*time.Minute, 9, true, false
}

func TestNoFaultBreaksAPromiseWhileVotersAreReplacedAndReaddressed(t *testing.T) {
	t.Parallel()
	replaced := 0
	for _, r := range runSeeds(t, 2*time.Hour, replaces) {
		t.Logf("%d voters were replaced, %d peer URLs changed: %s", r.Replaced, r.Readdressed, r.Plan)
		replaced += r.Replaced
	}
	if replaced == 0 && !t.Failed() {
		t.Error("no voter was replaced")
	}
}

// These seeds once found an error among replacements and readdresses.
func TestRegressionSeedsOfReplacementsFindNothing(t *testing.T) {
	t.Parallel()
	for i, once := range []regression{
		{7006, "an ejected host whose peer URL has changed joins again without a healthy period"},
		{7046, "a leader with a slow disk keeps leading while its peer URL waits for a readdress"},
		{7043, "a voter whose disk failed long ago is replaced because its etcd is frozen for a minute"},
		{7238, "with a short window and a long interval of the probe, a leader counts as recovering while every " +
			"write is slow"},
		{7340, "no voter whose peer URL waits for a readdress removes an unhealthy surplus voter, and no readdress " +
			"begins"},
		{7062, "(an error of the simulation) no operator restores a peer URL for which etcd would have to restart"},
	} {
		if i > 1 && *hoursFlag < 100 {
			continue
		}
		if r := run(t, Options{Seed: once.seed, Faulty: 4 * time.Hour, plan: replaces}); r.Breach != nil {
			t.Errorf("seed %d, which once found this error: %s: %v", once.seed, once.error, r.Breach)
		}
	}
}
