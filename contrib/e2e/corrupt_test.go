// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// stored is the value that becomes corrupt.
const stored = "one hundred"

// corrupt writes a value, and flips a different bit of it in the database of each of these hosts, while the host is in
// maintenance.
func (w *world) corrupt(hosts ...*host) {
	w.t.Helper()
	w.hosts[0].write("balance", stored)
	for i, h := range hosts {
		h.requestWork(policy.WorkMaintenance)
		w.eventually("etcd is stopped for maintenance", func() bool { return h.maintenance() == policy.RequestSafe })
		must(w.t, testbed.Corrupt(h.DataDir(), stored[i:]))
		h.endMaintenance()
		w.eventually("the maintenance has ended", func() bool { return h.maintenance() == "" && h.writes() })
	}
	w.waitRolesAgree()
}

// compacting compacts etcd's history every ten seconds until the test ends, as Kubernetes does every five minutes.
func (w *world) compacting() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(10 * time.Second); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				w.compact(ctx)
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-ended })
}

// compact compacts etcd's history through the first member that answers.
func (w *world) compact(ctx context.Context) {
	for _, h := range w.hosts {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		answer, err := h.etcd.Put(ctx, "compacted", "")
		if err == nil {
			_, err = h.etcd.Compact(ctx, answer.Header.Revision)
		}
		cancel()
		if err == nil {
			return
		}
	}
}

// reads returns the value of a key by a linearizable read through this host; "" if the read fails or the key does not
// exist.
func (h *host) reads(key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := h.etcd.Get(ctx, key)
	if err != nil || len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}

// advises reports whether the host's health has this finding.
func (h *host) advises(code string) bool {
	s, ok := h.status()
	return ok && slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool { return f.Code == code })
}

func TestACorruptLeaderIsNamedAndReplacedWithoutAFailedWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 4, voters: 3, set: map[string]string{"repair.unhealthy": "30s"}})
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.start(w.hosts[3])
	w.waitRolesAgree()
	w.compacting()
	n1, n4 := w.hosts[0], w.hosts[3]
	w.corrupt(n1)
	w.lead(n1)
	if got := n1.reads("balance"); got == stored || got == "" {
		t.Fatalf("n1 reads %q", got)
	}
	began := time.Now()
	load := w.retrying(20)
	named := func(code string) func() bool { return func() bool { return n1.advises(code) } }
	w.eventually("n1 reports that its data differs", named("MEMBER_DIFFERS"))
	t.Logf("its data was found to differ after %s", time.Since(began).Round(time.Second/10))
	w.eventually("the others name it", func() bool { return w.hosts[1].advises("VOTERS_DIFFER") })
	w.eventually("another member leads", func() bool { voters, _ := w.split(); return voters[0] != n1 })
	t.Logf("another member leads after %s", time.Since(began).Round(time.Second/10))
	w.eventually("its data is corrupt", named("MEMBER_CORRUPT"))
	t.Logf("it was corrupt after %s", time.Since(began).Round(time.Second/10))
	t.Log(me().ctl(n1, "health").output)
	t.Log(me().ctl(w.hosts[1], "health").output)
	w.within(4*formation, "n4 votes in its place", func() bool {
		return w.has(3, 0) && w.isVoter(n4) && !w.isVoter(n1) && !w.busy()
	})
	t.Logf("it was replaced after %s", time.Since(began).Round(time.Second/10))
	checkReport(t, load)
	t.Log(me().ctl(n4, "history").output)
	for _, h := range w.hosts[1:] {
		w.eventually(h.Options.Name+" answers a read", func() bool { return h.reads("balance") != "" })
		if got := h.reads("balance"); got != stored {
			t.Errorf("%s reads %q", h.Options.Name, got)
		}
	}
	w.eventually("n1's etcd is stopped", func() bool { return !n1.etcdRuns() })
	if kept, err := filepath.Glob(filepath.Join(n1.DataDir(), "member*")); err != nil || len(kept) != 1 {
		t.Errorf("the corrupt data is not kept: %v %v", kept, err)
	}
	w.eventually("no host reports a difference", func() bool {
		return !slices.ContainsFunc(w.hosts, func(h *host) bool {
			return h.advises("VOTERS_DIFFER") || h.advises("MEMBER_CORRUPT")
		})
	})
	w.eventually("nothing is left over", func() bool {
		return w.has(3, 0) && w.absent(w.keys().Op()) && w.absent(w.keys().Lock())
	})
	w.checkHistory() // verify cannot read the changes: etcd's history was compacted
	w.checkData()
}

func TestNoHostActsWhileItIsUnknownWhoseDataIsCorrect(t *testing.T) {
	t.Parallel()
	w := threeIdleVoters(t)
	w.corrupt(w.hosts[0], w.hosts[1])
	w.compacting()
	w.eventually("every host reports that no majority has the same data", func() bool {
		return !slices.ContainsFunc(w.hosts, func(h *host) bool { return !h.advises("VOTERS_DIFFER") })
	})
	n3 := w.hosts[2]
	n3.requestWork(policy.WorkMaintenance)
	w.eventually("n3 reports why it is not taken down", func() bool { return n3.hasReason(policy.DataDiffers) })
	w.never(10*time.Second, "n3 is taken down", func() bool { return n3.maintenance() == policy.RequestSafe })
}
