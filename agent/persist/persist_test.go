// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package persist

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disk is a fake disk that can hang until the test releases it, and that rejects writes while it is full.
type disk struct {
	hoststate.HostFiles
	hang chan struct{}
	full bool
}

func (d *disk) Write(path string, data []byte, sync bool) error {
	if d.hang != nil {
		<-d.hang
	}
	if d.full {
		return errors.New("no space left on device")
	}
	return d.HostFiles.Write(path, data, sync)
}

// bench is a Persister in virtual time that records its writes.
type bench struct {
	*Persister
	t     *testing.T
	disk  *disk
	woken int

	mu    sync.Mutex
	noted []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b, dir, began := &bench{t: t, disk: &disk{}}, t.TempDir(), time.Now()
	files, err := hoststate.Open(b.disk, dir+"/state", dir+"/run", nil)
	must(t, err)
	opt := Options{
		BootID: "boot-1", Files: files, Logger: slog.New(slog.DiscardHandler),
		Now:  func() time.Duration { return time.Hour + time.Since(began) },
		Wake: func() { b.woken++ },
		Noting: func(what string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.noted = append(b.noted, what)
		},
	}
	opt.Config.Host.ID = "2"
	b.Persister = New(opt)
	return b
}

// round returns a round answered by cluster 7. The round decides to record that cluster unless the disk already has it.
func (b *bench) round() *round.Round {
	r := &round.Round{At: b.opt.Now(), Wall: time.Now().UTC()}
	r.View.Cluster.ID, r.Decision.Notes.Self.ClusterAnswered = 7, b.files.LastCluster() != 7
	return r
}

// keep calls Decided with a round and waits for the writes to end or hang.
func (b *bench) keep(r *round.Round) {
	b.Decided(b.t.Context(), r)
	synctest.Wait()
}

func (b *bench) notes(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.noted, want) {
		b.t.Errorf("%q was written, want %q", b.noted, want)
	}
	b.noted = nil
}

func TestHungDiskDoesNotBlockTheLoopAndNothingIsWrittenTwiceAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.disk.hang = make(chan struct{})
		for range 3 {
			b.keep(b.round())
			time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		}
		close(b.disk.hang)
		synctest.Wait()
		if b.notes("cluster"); b.files.LastCluster() != 7 {
			t.Errorf("the last cluster is %d", b.files.LastCluster())
		}
		b.keep(b.round())
		b.notes()
	})
}

func TestFailedWriteIsTriedAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.disk.full = true
		b.keep(b.round())
		b.keep(b.round())
		b.notes("cluster")
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		b.disk.full = false
		b.keep(b.round())
		if b.notes("cluster"); b.files.LastCluster() != 7 {
			t.Errorf("the last cluster is %d", b.files.LastCluster())
		}
	})
}

func TestMembershipIsRecordedAsDecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		r := b.round()
		r.Decision.Notes.Self = policy.SelfNote{Member: true, MemberID: 1, Standby: 1}
		b.keep(r)
		if id, member := b.files.Membership(); id != 7 || member != 1 || b.files.Standby() != 1 {
			t.Errorf("this host is member %d of %d, and standby %d", member, id, b.files.Standby())
		}
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		r = b.round()
		r.Decision.Notes.Self = policy.SelfNote{Member: true}
		b.keep(r)
		if id, member := b.files.Membership(); id != 7 || member != 0 || b.files.Standby() != 1 {
			t.Errorf("this host is member %d of %d, and standby %d", member, id, b.files.Standby())
		}
	})
}

func TestHealthyTimeAfterAnEjectionIsRecordedAndRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		noted := func(well time.Duration) hoststate.HealthyPeriod {
			time.Sleep(noteEvery) //nolint:forbidigo // virtual time
			r := b.round()
			r.View.Ejections = policy.Ejections{Times: 1, Member: 9, HealthyFor: well}
			r.Decision.Notes.Self = policy.SelfNote{Clean: true}
			b.keep(r)
			return b.files.Noted("boot-1", b.opt.Now(), 0).HealthyPeriod
		}
		now := b.opt.Now() + noteEvery
		want := hoststate.HealthyPeriod{BootID: "boot-1", Member: 9, Began: now - time.Minute, Seen: now}
		if got := noted(time.Minute); got != want {
			t.Errorf("%+v was noted, want %+v", got, want)
		}
		if got := noted(0); got != (hoststate.HealthyPeriod{}) {
			t.Errorf("it is unhealthy, and the record is %+v", got)
		}
	})
}

func TestStartGuardIsSetAsDecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, c := range []struct {
			want policy.StartGuard
			held bool
		}{{policy.GuardSet, true}, {policy.GuardUnchanged, true}, {policy.GuardCleared, false}} {
			r := b.round()
			r.Decision.Notes.StartGuard = c.want
			b.keep(r)
			if held, known := b.files.StartGuarded(); held != c.held || !known {
				t.Errorf("%v: held back: %t, known: %t", c.want, held, known)
			}
			time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		}
	})
}

func TestUnreadableStartGuardIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want  policy.StartGuard
		there bool
	}{{policy.GuardSet, true}, {policy.GuardCleared, false}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			dir := t.TempDir()
			path := dir + "/etcd.hold"
			must(t, os.Symlink(path, path)) // a symlink to itself cannot be read
			files, err := hoststate.Open(b.disk, dir, dir, nil)
			must(t, err)
			b.files = files
			r := b.round()
			r.Decision.Notes.StartGuard = policy.GuardUnchanged
			b.keep(r)
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("something was changed without a decision: %v", err)
			}
			r.Decision.Notes.StartGuard = c.want
			b.keep(r)
			if _, err := os.Stat(path); (err == nil) != c.there {
				t.Errorf("%v: the file %v", c.want, err)
			}
		})
	}
}

func TestHostRequestsItsPartOfARolloutOnceAndStartsARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		r := b.round()
		r.Rollout = &record.Rollout{ID: "x", Work: "reboot", Reason: "a test", By: "root", Resumed: 3}
		r.Decision.Notes.Request.Change = policy.RequestTurn
		b.keep(r)
		k, _ := b.files.Asked()
		if k == nil || k.Rollout != "x" || k.Work != policy.WorkReboot || k.AskedIn != "boot-1" || k.For <= 0 ||
			k.RolloutResumed != 3 || b.woken != 1 {
			t.Fatalf("the request is %+v, and the loop was woken %d times", k, b.woken)
		}
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		again := b.round()
		again.Rollout, again.Decision = r.Rollout, r.Decision
		b.keep(again)
		if now, _ := b.files.Asked(); now != k {
			t.Errorf("the new request is %+v", now)
		}
	})
}

func TestAgentRequestsADefragmentationAndWithdrawsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		r := b.round()
		r.Decision.Notes.Request = policy.RequestNote{Change: policy.RequestDefrag, Text: "300 MiB of 600 MiB is free"}
		b.keep(r)
		k, _ := b.files.Asked()
		if k == nil || k.Work != policy.WorkDefrag || !k.Automatic || k.By != "quorumd" || k.AskedIn != "boot-1" ||
			k.For <= 0 || k.Reason != "300 MiB of 600 MiB is free" || b.woken != 1 {
			t.Fatalf("the request is %+v, and the loop was woken %d times", k, b.woken)
		}
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		next := b.round()
		next.Request = k
		next.Decision.Notes.Request = policy.RequestNote{Change: policy.RequestWithdrawn}
		b.keep(next)
		if now, last := b.files.Asked(); now != nil || last != nil {
			t.Errorf("after the withdrawal the request is %+v, and %+v ended", now, last)
		}
	})
}

func TestEndIsNotRecordedForARequestThatWasChangedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		seen := &hoststate.Request{Request: policy.Request{Work: policy.WorkMaintenance}, Since: time.Unix(1, 0)}
		now := *seen
		now.For = time.Hour
		must(t, b.files.TakeTurn(&now))
		r := b.round()
		r.Request = seen
		r.Decision.Notes.Request = policy.RequestNote{Change: policy.RequestEnds, Code: policy.Cancelled, Text: "x"}
		b.keep(r)
		if k, last := b.files.Asked(); k == nil || last != nil {
			t.Errorf("the request is %+v, and the last end %+v", k, last)
		}
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		r.Request = &now
		b.keep(r)
		if k, last := b.files.Asked(); k != nil || last == nil || last.Code != policy.Cancelled || last.Text != "x" {
			t.Errorf("the request is %+v, and the last end %+v", k, last)
		}
	})
}

func TestEndIsNotRecordedForARemovalThatHasBegunMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		r := b.round()
		must(t, b.files.ChangeRemoval(func(f *hoststate.Removals) {
			f.Removal = &hoststate.Removal{RequestedRemoval: control.RequestedRemoval{
				MemberID: 1, Name: "n1", Since: r.Wall, Until: r.Wall.Add(-time.Second),
			}}
		}))
		r.Removal, _ = b.files.Removals()
		must(t, b.files.MarkRemoval(r.Removal, true))
		r.Decision.Notes.Removal = policy.RemovalNote{Ends: true, Code: policy.Cancelled, Text: "x"}
		if b.keep(r); b.noted == nil {
			t.Error("nothing was tried")
		}
		if k, last := b.files.Removals(); k == nil || last != nil {
			t.Errorf("the request is %+v, and the last end %+v", k, last)
		}
		time.Sleep(noteEvery) //nolint:forbidigo // virtual time
		r.Removal, _ = b.files.Removals()
		b.keep(r)
		if k, last := b.files.Removals(); k != nil || last == nil || last.Code != policy.Cancelled || last.Text != "x" {
			t.Errorf("the request is %+v, and the last end %+v", k, last)
		}
	})
}
