// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	fillWrites = 11_000 // more than etcd keeps in its Raft log, so that a learner gets a snapshot
	fillSize   = 100 << 10
	fillers    = 16
	quota      = 8 << 30 // quota of etcd's database, in bytes
	loadRate   = 300     // writes a second
	// afterwards is how long the writes are watched after a join has ended.
	afterwards = 3 * time.Second
	// gapLimit is the longest gap in the writes that a join may cause.
	gapLimit = 100 * time.Millisecond
	// joinBound is how long a join that copies the database may take.
	joinBound = 3 * time.Minute
	// memoryDisk is where the disks of the joining hosts are; memoryNeed is how many bytes they need there.
	memoryDisk = "/dev/shm"
	memoryNeed = 4 << 30
)

// TestALearnerOfAGigabyteIsPromotedWithoutAGapInTheWrites also promotes a learner eagerly, like a program that retries
// until etcd accepts the promotion, to prove that the test can detect a gap. A bystander, a separate etcd on the
// voter's disk, gets the same writes throughout: its gaps are caused by the machine. The disks of the joining hosts are
// in memory: on the voter's disk the copy would slow down the voter's writes, which does not happen if each host has
// its own disk.
func TestALearnerOfAGigabyteIsPromotedWithoutAGapInTheWrites(t *testing.T) {
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) { promoteWithoutGap(t, version) })
	}
}

func promoteWithoutGap(t *testing.T, version string) {
	w := newWorld(t, worldOptions{hosts: 3, each: func(i int, o *testbed.HostOptions) {
		o.Etcd = testbed.Etcd(t, version)
		o.Set["etcd.environment"] = fmt.Sprintf(`{ETCD_QUOTA_BACKEND_BYTES: "%d", ETCD_SNAPSHOT_COUNT: "10000"}`,
			quota) // 10000 is etcd 3.6's default for ETCD_SNAPSHOT_COUNT
		o.Set["timing.learnerStall"], o.Set["timing.learnerMax"] = "2m", joinBound.String()
		if i > 1 {
			o.Disk = inMemory(t)
		}
	}})
	n1 := w.hosts[0]
	w.start(n1)
	w.bootstrap()
	n1.fill()
	bystander := startLoad(t, testbed.StartCluster(t, 1, testbed.ClusterOptions{Version: version}).Endpoints()[0])

	n1.stop() // its etcd keeps running; the eager promotion does not involve quorumd
	eager, gap := n1.promoteEagerly(version)
	if allowed := eager.allowed(bystander); gap <= allowed {
		t.Errorf("eager promotion caused a gap of only %v, and the machine one of %v: this run proves nothing", gap,
			allowed)
	}

	w.start(n1)
	load := startLoad(t, n1.Options.ClientURL)
	joins := n1.watchJoins()
	w.start(w.hosts[1:]...)
	w.within(2*joinBound, "there are 3 voters", func() bool { return w.has(3, 0) && w.absent(w.keys().Op()) })
	spans := joins(2)
	report := load.Stop()
	w.verify(3, 0)

	t.Logf("etcd %s, eager promotion: longest gap %v, the bystander's %v", version, gap,
		eager.longestGap(bystander.Report()))
	for i, s := range spans {
		gap, allowed := s.longestGap(report), s.allowed(bystander)
		t.Logf("etcd %s, join %d: longest gap %v, the bystander's %v, in %.1f s",
			version, i+1, gap, s.longestGap(bystander.Report()), s.to.Sub(s.from).Seconds())
		if gap > allowed {
			t.Errorf("join %d: no write was acknowledged for %v, the limit is %v", i+1, gap, allowed)
		}
	}
	if i := slices.IndexFunc(report.Writes, func(w testbed.Write) bool { return w.Err != nil }); i >= 0 {
		t.Errorf("%d of %d writes failed, the first: %v", report.Failed, len(report.Writes), report.Writes[i].Err)
	}
	for _, h := range w.hosts[1:] {
		if !strings.Contains(tail(filepath.Join(h.Options.Dir, "etcd.log"), 1<<20), "saved database snapshot") {
			t.Errorf("%s did not receive the whole database", h.Options.Name)
		}
	}
}

// inMemory returns a directory in memory.
func inMemory(t *testing.T) string {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(memoryDisk, &s); err != nil {
		t.Fatal(err)
	}
	if free := s.Bavail * uint64(s.Bsize); free < memoryNeed {
		t.Fatalf("%s has %d MiB free, the test needs %d MiB there: mount -o remount,size=%d %s",
			memoryDisk, free>>20, memoryNeed>>20, memoryNeed, memoryDisk)
	}
	dir, err := os.MkdirTemp(memoryDisk, "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a gigabyte.
func (h *host) fill() {
	h.w.t.Helper()
	began := time.Now()
	value := strings.Repeat("v", fillSize)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(h.w.t.Context())
	for range fillers {
		group.Go(func() error {
			for n := next.Add(1); n <= fillWrites; n = next.Add(1) {
				ctx, cancel := context.WithTimeout(ctx, bound)
				_, err := h.etcd.Put(ctx, fmt.Sprintf("fill/%06d", n), value)
				cancel()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		h.w.t.Fatalf("cannot fill the database: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	status, err := h.etcd.Status(ctx, h.Options.ClientURL)
	if err != nil || status.DbSize < fillWrites*fillSize {
		h.w.t.Fatalf("the database is not filled: %v, %v", status, err)
	}
	h.w.t.Logf("%.1f s to write a database of %d MiB", time.Since(began).Seconds(), status.DbSize>>20)
}

// startLoad writes to one member only: that member leads, and learners refuse clients.
func startLoad(t *testing.T, url string) *testbed.WriteLoad {
	t.Helper()
	load, err := testbed.StartWriteLoad(context.Background(), testbed.LoadOptions{
		Endpoints: []string{url}, Rate: loadRate, Timeout: 20 * time.Second,
		Prefix: fmt.Sprintf("load/%d/", time.Now().UnixNano()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Stop() })
	return load
}

// span is a period during which the writes are watched.
type span struct{ from, to time.Time }

// wait waits until the period is over.
func (s span) wait(w *world) {
	w.t.Helper()
	w.within(time.Until(s.to)+bound, "the time is over", func() bool { return time.Now().After(s.to) })
}

// longestGap returns the longest time within a span without an acknowledged write.
func (s span) longestGap(r testbed.LoadReport) time.Duration { return r.GapWithin(s.from, s.to) }

// allowed returns how long a gap within this span may be on this machine.
func (s span) allowed(bystander *testbed.WriteLoad) time.Duration {
	return max(gapLimit, s.longestGap(bystander.Report())*3/2)
}

// watchJoins records when operations begin and end. The returned function waits until n of them have ended, and then
// for the duration [afterwards].
func (h *host) watchJoins() func(n int) []span {
	ctx, cancel := context.WithCancel(context.Background())
	h.w.t.Cleanup(cancel)
	ended := make(chan span, 8) // more than the number of joins
	go func() {
		var from time.Time
		for answer := range h.etcd.Watch(ctx, h.w.keys().Op()) {
			for _, e := range answer.Events {
				switch {
				case e.IsCreate():
					from = time.Now()
				case e.Type == clientv3.EventTypeDelete:
					ended <- span{from, time.Now().Add(afterwards)}
				}
			}
		}
	}()
	return func(n int) []span {
		h.w.t.Helper()
		var spans []span
		h.w.eventually("the joins are seen to end", func() bool {
			select {
			case s := <-ended:
				spans = append(spans, s)
			default:
			}
			return len(spans) == n
		})
		spans[n-1].wait(h.w)
		return spans
	}
}

// promoteEagerly adds a member under load, promotes it as soon as etcd accepts that, and removes it again. It returns
// the span during which it watched the writes, and the longest gap within it.
func (h *host) promoteEagerly(version string) (span, time.Duration) {
	t := h.w.t
	t.Helper()
	ports := testbed.FreePorts(t, 2)
	options := testbed.MemberOptions{
		Binary: testbed.Etcd(t, version), Name: "eager", Dir: h.w.dir, DataDir: inMemory(t), State: "existing",
		ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), PeerURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		Extra: []string{fmt.Sprintf("--quota-backend-bytes=%d", quota)},
	}
	options.InitialCluster = fmt.Sprintf("%s=%s,eager=%s", h.Options.Name, h.Options.PeerURL, options.PeerURL)
	ctx, cancel := context.WithTimeout(t.Context(), joinBound)
	defer cancel()
	load := startLoad(t, h.Options.ClientURL)
	watched := span{from: time.Now()}
	added, err := h.etcd.MemberAddAsLearner(ctx, []string{options.PeerURL})
	if err != nil {
		t.Fatal(err)
	}
	member, err := testbed.StartMember(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	member.StopAfter(t)
	testbed.Eventually(t, joinBound, "etcd accepts the promotion", func() bool {
		_, err := h.etcd.MemberPromote(ctx, added.Member.ID)
		return err == nil
	})
	promoted := time.Since(watched.from)
	if err := member.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	watched.to = time.Now().Add(afterwards)
	watched.wait(h.w)
	report := load.Stop()
	t.Logf("eager promotion was accepted after %.1f s; %d of %d writes failed", promoted.Seconds(), report.Failed,
		len(report.Writes))
	_, err = h.etcd.MemberRemove(ctx, added.Member.ID)
	if err = errors.Join(err, member.Kill9()); err != nil {
		t.Fatal(err)
	}
	_ = member.Wait(ctx) // it was killed
	if err := os.RemoveAll(options.DataDir); err != nil {
		t.Fatal(err)
	}
	return watched, watched.longestGap(report)
}
