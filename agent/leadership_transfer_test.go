// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// crawl makes writes to these hosts' disks so slow that no request reaches a quorum in time while one of them leads.
func (f *fleet) crawl(names ...string) {
	for _, name := range names {
		h := f.hosts[name]
		h.mu.Lock()
		h.slow = 800 * time.Millisecond
		h.mu.Unlock()
		f.etcd.mu.Lock()
		f.etcd.crawls[h.member] = true
		f.etcd.mu.Unlock()
	}
}

// ledBy returns the leader, and the number of leadership transfers.
func (f *fleet) ledBy() (id uint64, moved int) {
	f.etcd.mu.Lock()
	defer f.etcd.mu.Unlock()
	return f.etcd.leader(), f.etcd.moved
}

func (f *fleet) hasReason(name string, code policy.ReasonCode) bool {
	for _, r := range f.hosts[name].agent.Status().Reasons {
		if r.Code == string(code) {
			return true
		}
	}
	return false
}

func TestALeaderTooSlowForReadsTransfersLeadershipWithinTwentySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, smallPace())
		defer f.close()
		f.pass(5 * time.Minute)
		f.crawl("v1")
		took := f.until(time.Minute, "another voter leads", func() bool { id, _ := f.ledBy(); return id != 1 })
		t.Logf("it took %s", took)
		if took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
		f.pass(time.Hour)
		if id, moved := f.ledBy(); id == 1 || moved != 1 {
			t.Errorf("an hour later member %d leads, after %d leadership transfers", id, moved)
		}
	})
}

func TestALeaderKeepsLeadingIfAllDisksAreEquallySlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, smallPace())
		defer f.close()
		f.pass(5 * time.Minute)
		f.crawl("v1", "v2", "v3")
		f.until(time.Minute, "the leader reports it", func() bool { return f.hasReason("v1", policy.CommonCause) })
		keys := record.KeysFor("test")
		for _, name := range []string{"v2", "v3"} {
			if !strings.Contains(f.etcd.get(keys.Host("id-"+name)), `"health":"`+health.Slow.String()+`"`) {
				t.Errorf("%s has not published its health state", name)
			}
		}
		f.pass(time.Hour)
		if _, moved := f.ledBy(); moved != 0 || f.hasReason("v1", policy.NotQualified) {
			t.Errorf("leadership was transferred %d times", moved)
		}
	})
}

func TestALeaderTooSlowForReadsRespectsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 0, smallPace())
		defer f.close()
		f.pass(5 * time.Minute)
		pause, err := record.Encode(record.Pause{By: "root", Reason: "testing", Until: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		f.put(record.KeysFor("test").Pause(), string(pause))
		f.crawl("v1")
		f.until(time.Minute, "the leader reports the pause", func() bool { return f.hasReason("v1", policy.Paused) })
		f.pass(10 * time.Minute)
		if _, moved := f.ledBy(); moved != 0 {
			t.Errorf("leadership was transferred %d times", moved)
		}
	})
}
