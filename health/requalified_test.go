// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"syscall"
	"testing"
	"time"
)

// failedNow returns a bench of a member whose disk has returned one error, and whose etcd has run for an hour.
func failedNow(t *testing.T) *bench {
	t.Helper()
	b := member(t)
	b.etcd.Process = EtcdProcess{Known: true, Runs: true, Started: b.now - time.Hour}
	b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
	b.look()
	b.want(Failed)
	return b
}

func TestAFailedDiskRecoversByACleanRunAndARestartOfEtcd(t *testing.T) {
	t.Parallel()
	b := failedNow(t)
	b.burst(3000, ms)
	b.want(Failed)
	b.hasText("3000 of 3000 writes without an error so far; etcd has not been restarted since the error")
	b.etcd.Process.Started = b.now
	b.burst(1, ms)
	b.want(OK)
	if b.result.Qualified {
		t.Error("qualified although not all writes were like etcd's")
	}
	b.look()
	b.want(OK) // the old error does not count again
}

func TestADiskStaysFailedWithoutAWholeCleanAndFastRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bench){
		"the run is not whole": func(b *bench) { b.burst(2999, ms) },
		"it is slow":           func(b *bench) { b.burst(3000, 48*ms) },
		"an error comes between": func(b *bench) {
			b.burst(2000, ms)
			b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
			b.etcd.Process = EtcdProcess{Known: true}
			b.burst(2999, ms)
		},
		"a write hangs": func(b *bench) {
			b.burst(2999, ms)
			b.next.InFlight = time.Minute
			b.burst(1, ms)
		},
		"it is not known whether etcd runs": func(b *bench) { b.etcd.Process = EtcdProcess{}; b.burst(3000, ms) },
		"etcd was started before the last error": func(b *bench) {
			b.etcd.Process = EtcdProcess{Known: true, Runs: true, Started: b.now}
			b.now += time.Second
			b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
			b.burst(3000, ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := failedNow(t)
			b.etcd.Process.Started = b.now + 1
			change(b)
			b.want(Failed)
		})
	}
}

func TestTheTimeOfAFailureSurvivesARestartOfTheAgent(t *testing.T) {
	t.Parallel()
	b := failedNow(t)
	b.now += time.Minute
	b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
	b.look()
	started := b.now - time.Second
	b.next.Err = nil
	b.restart(time.Second, DefaultThresholds())
	b.etcd.Process = EtcdProcess{Known: true, Runs: true, Started: started}
	b.burst(3000, ms)
	b.want(Failed)
	b.etcd.Process.Started = b.now
	b.burst(1, ms)
	b.want(OK)
}

func TestAFailedDiskWithoutAMemberQualifiesInBursts(t *testing.T) {
	t.Parallel()
	b := failedNow(t)
	b.member, b.etcd.Process = false, EtcdProcess{Known: true}
	b.look()
	if b.result.Figures.QualifyNeed != 0 {
		t.Error("it asks for bursts before a write has completed")
	}
	b.each(time.Hour, ms)
	b.want(Failed) // only writes like etcd's count here
	b.burst(1, ms)
	if f := b.result.Figures; f.QualifyDone != 1 || f.QualifyNeed != 3000 {
		t.Errorf("progress is %d of %d", f.QualifyDone, f.QualifyNeed)
	}
	b.burst(2999, ms)
	b.want(OK)
	if !b.result.Qualified {
		t.Error("not qualified after a run that passed")
	}
}

func TestAFailedDiskOfAMemberRecoversByItsUsualWrites(t *testing.T) {
	t.Parallel()
	b := failedNow(t)
	b.etcd.Process.Started = b.now + 1
	b.each(50*time.Minute, ms)
	b.want(OK)
}
