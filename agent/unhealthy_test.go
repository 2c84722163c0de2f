// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// unhealthyFleetGrace is the grace period of an unhealthy voter in these tests, and slowFleetGrace the longer one of a
// voter that is only slow.
const (
	unhealthyFleetGrace = 10 * time.Minute
	slowFleetGrace      = 6 * unhealthyFleetGrace
)

// fsyncCount counts the fsyncs of a host's etcd: five per second.
type fsyncCount struct {
	at          time.Duration
	quick, slow uint64
}

// histogram returns the counts of fsyncs, including those since the last call.
func (h *fleetHost) histogram() health.Histogram {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, made := h.f.now(), &h.fsyncs.quick
	if h.slow >= 128*time.Millisecond {
		made = &h.fsyncs.slow
	}
	*made += uint64(5 * (now - h.fsyncs.at).Seconds())
	h.fsyncs.at = now
	return health.Histogram{
		Known: true, Bounds: []float64{0.016, 0.128, 0.256}, Counts: []uint64{h.fsyncs.quick, 0, h.fsyncs.slow, 0},
	}
}

// slows sets the duration of writes to a host's disk; 0 restores the usual duration.
func (f *fleet) slows(name string, write time.Duration) {
	h := f.hosts[name]
	h.histogram()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = write
}

// memberMetrics returns the metrics of the etcd at a client URL.
func (f *fleet) memberMetrics(_ context.Context, url string) health.EtcdReading {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	h := f.hosts[name]
	if h == nil || !h.runs() {
		return health.NotAvailable[health.EtcdReading]("it does not answer")
	}
	seen := health.NotAvailable[health.EtcdReading]("it is not simulated")
	seen.WALFsync = h.histogram()
	return seen
}

// newUnhealthyFleet returns a fleet of three voters, and a spare that replaces a voter that stays unhealthy for the
// grace period.
func newUnhealthyFleet(t *testing.T) *fleet {
	return newPreparedFleet(&fleet{t: t, pace: usualPace(), prepare: func(h *fleetHost) {
		h.config = fmt.Sprintf("repair: {unhealthy: %s}\n", unhealthyFleetGrace)
	}}, 1)
}

// forgeRecord writes a host's record in place of its agent, as another client with write access may do.
func (f *fleet) forgeRecord(name string, change func(h *record.Host)) {
	f.t.Helper()
	key := record.KeysFor("test").Host("id-" + name)
	h, err := record.Decode[record.Host]([]byte(f.etcd.get(key)))
	if err != nil {
		f.t.Fatal(err)
	}
	h.Instance = "forged" // its agent treats it as another agent's record, and does not overwrite it
	change(&h)
	value, err := record.Encode(h)
	if err != nil {
		f.t.Fatal(err)
	}
	// an unknown field must have no effect, even if its name suggests a report by etcd itself
	text := strings.Replace(string(value), `"health"`, `"etcdFsync":0.512,"health"`, 1)
	if _, err := f.etcd.of("intruder").Txn(f.t.Context(), nil, clientv3.OpPut(key, text)); err != nil {
		f.t.Fatal(err)
	}
}

func TestAForgedHostRecordRemovesNoHealthyVoter(t *testing.T) {
	t.Parallel()
	for state, reason := range map[health.State]string{
		health.Slow:    "n3 SLOW",
		health.Stalled: "n3 STALLED",
		health.Failed:  "n3 FAILED",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newUnhealthyFleet(t)
				defer f.close()
				f.spareReady()
				f.forgeRecord("v3", func(h *record.Host) { h.Health, h.HealthText = state.String(), "DISK_FSYNC_SLOW" })
				f.pass(slowFleetGrace + 5*time.Minute)
				if v := f.voters(); !slices.Equal(v, []string{"v1", "v2", "v3"}) {
					t.Fatalf("the voters are %v: one forged record has removed a healthy voter", v)
				}
				want := "v3 has been " + state.String()
				evidence := "its etcd's metrics showed a minute without a slow fsync; no host replaces it unless"
				for _, name := range []string{"v1", "s0000"} {
					if got := f.reason(name, policy.VoterSuspect); !strings.Contains(got, want) ||
						!strings.Contains(got, evidence) {
						t.Errorf("%s reports %q, want %q and the missing evidence", name, got, want)
					}
				}
			})
		})
	}
}

// spareReady waits five minutes, and fails the test unless the spare is then healthy.
func (f *fleet) spareReady() {
	f.t.Helper()
	f.pass(5 * time.Minute)
	if s := f.hosts["s0000"].agent.Status(); s.Health.State != "OK" {
		f.t.Fatalf("the spare is %s: %s", s.Health.State, s.Health.Text)
	}
}

// reason returns the text of a host's reason with that code, or "".
func (f *fleet) reason(name string, code policy.ReasonCode) string {
	for _, r := range f.hosts[name].agent.Status().Reasons {
		if r.Code == string(code) {
			return r.Text
		}
	}
	return ""
}

func TestAPermanentlySlowVoterIsReplacedSoonAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newUnhealthyFleet(t)
		defer f.close()
		f.spareReady()
		f.slows("v3", 154*time.Millisecond)
		took := f.until(slowFleetGrace+5*time.Minute, "the spare votes in place of v3", func() bool {
			return slices.Equal(f.voters(), []string{"v1", "v2", "s0000"})
		})
		t.Logf("it took %s with a grace period of %s", took, slowFleetGrace)
	})
}
