// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// restart restarts the agent after a pause.
func (b *bench) restart(pause time.Duration, limits Thresholds) {
	b.t.Helper()
	data, err := b.j.Snapshot("boot")
	if err != nil {
		b.t.Fatal(err)
	}
	b.now += pause
	if b.j, err = Restore(data, limits, "boot", b.now); err != nil {
		b.t.Fatal(err)
	}
}

func TestARestartKeepsTheStateAndTheQualification(t *testing.T) {
	t.Parallel()
	b := spare(t)
	b.restart(10*time.Second, DefaultThresholds())
	b.look()
	if b.result.State != OK || !b.result.Qualified {
		t.Errorf("a qualified disk came back as %s, qualified %v: %s", b.result.State, b.result.Qualified,
			b.result.Text)
	}
	b.hasText("no sample since the agent started")
	b.each(5*time.Second, ms)
	b.want(OK)
}

func TestARestartDoesNotShortenAnything(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.each(5*time.Second, 200*ms)
	b.want(Slow)
	since := b.result.Since
	b.each(14*time.Minute, ms)
	b.restart(10*time.Second, DefaultThresholds())
	b.look()
	if b.result.State != Slow || b.result.Since != since {
		t.Errorf("got %s since %s, and was SLOW since %s", b.result.State, b.result.Since, since)
	}
	if took := b.until(Warm, time.Hour); took != 300*time.Second {
		t.Errorf("it took %s until WARM, want the samples of a window", took)
	}
	b.until(OK, time.Hour)
	b.restart(time.Second, DefaultThresholds())
	b.pass(15*time.Minute, ms)
	b.warm()
	if took := b.until(OK, time.Hour); took < 10*time.Minute-15*time.Second {
		t.Errorf("the second return took %s, want twice 5 min", took)
	}
}

func TestARestartDoesNotEndAStall(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.InFlight = 2 * time.Second
	b.look()
	b.next.InFlight = 0
	b.restart(time.Second, DefaultThresholds())
	b.look()
	b.want(Stalled)
	b.each(time.Second, ms)
	b.want(Slow)
}

func TestARestartDoesNotClearFailed(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.next.Err = &DiskError{"wal write+sync", syscall.EIO, b.now}
	b.look()
	b.next.Err = nil
	b.restart(24*time.Hour, DefaultThresholds())
	b.each(time.Hour, ms)
	b.want(Failed)
	b.hasText("wal write+sync: input/output error")
}

func TestAPauseTooLongForTheDataMakesItUnknown(t *testing.T) {
	t.Parallel()
	b := spare(t)
	b.restart(5*time.Minute+time.Second, DefaultThresholds())
	b.look()
	if b.result.State != Unknown || b.result.Code != DiskProbeDown || b.result.Qualified {
		t.Errorf("after 5 min: %s %s, qualified %v", b.result.State, b.result.Code, b.result.Qualified)
	}
}

func TestARunWithOtherLimitsDoesNotCount(t *testing.T) {
	t.Parallel()
	b := spare(t)
	limits := DefaultThresholds()
	limits.FsyncWarm = 8 * ms
	b.restart(time.Second, limits)
	b.each(time.Second, ms)
	b.want(Qualifying)
}

func TestOnlyASnapshotOfThisBootIsAccepted(t *testing.T) {
	t.Parallel()
	b := member(t)
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(data, DefaultThresholds(), "another", b.now); !errors.Is(err, ErrOtherBoot) {
		t.Errorf("another boot: %v", err)
	}
	if _, err := Restore(data, DefaultThresholds(), "boot", b.now-1); err == nil {
		t.Error("a snapshot from the future is accepted")
	}
	if _, err := Restore(data, Thresholds{}, "boot", b.now); err == nil {
		t.Error("bad thresholds are accepted")
	}
}

func TestAnInvalidSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	b := spare(t)
	good, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string][2]string{
		"empty":                {string(good), ""},
		"null":                 {string(good), "null"},
		"cut":                  {"}}", ""},
		"more after its end":   {"}}", "}}{}"},
		"version 0":            {`"version":1`, `"version":0`},
		"version 2":            {`"version":1`, `"version":2`},
		"an unknown field":     {`"version":1`, `"version":1,"x":1`},
		"an unknown state":     {`"cpu":{"state":"OK"`, `"cpu":{"state":"FINE"`},
		"a code of no rule":    {`"state":"OK"`, `"state":"OK","code":"DISK_UNFIT"`},
		"a state of no rule":   {`"cpu":{"state":"OK"`, `"cpu":{"state":"SLOW","code":"CPU_STARVED"`},
		"a state without code": {`"cpu":{"state":"OK"`, `"cpu":{"state":"SLOW"`},
		"another state's code": {`"space":{"state":"OK"`, `"space":{"state":"UNKNOWN","code":"DISK_SPACE_LOW"`},
		"qualified though not": {`"fsync":{"state":"OK"`, `"fsync":{"state":"SLOW","code":"DISK_FSYNC_SLOW"`},
		"a score too low":      {`"score":1`, `"score":0`},
		"a score too high":     {`"score":1`, `"score":101`},
		"a time too early":     {`"lastSample":`, `"lastSample":-`},
		"a time too late":      {`"lastSample":`, `"lastSample":9`},
		"a return too late": {
			`"fsync":{"state":"OK"`,
			`"fsync":{"returns":{"OK":[9000000000000000000]},"state":"OK"`,
		},
		"an outlier too late": {`"score":1`, `"outliers":[{"end":9000000000000000000,"latency":1}],"score":1`},
		"too large":           {`"boot":"boot"`, `"boot":"` + strings.Repeat("b", snapshotLimit) + `"`},
	} {
		bad := strings.Replace(string(good), swap[0], swap[1], 1)
		if bad == string(good) {
			t.Errorf("%s: %s is not in %s", name, swap[0], good)
		}
		if _, err := Restore([]byte(bad), DefaultThresholds(), "boot", b.now); err == nil ||
			!strings.HasPrefix(err.Error(), "cannot use the health snapshot") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestASnapshotOlderThanACheckIsAccepted(t *testing.T) {
	t.Parallel()
	b := member(t)
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	delete(s.Checks, "cpu")
	s.Checks["fromTheFuture"] = track{State: Failed, Code: "WHO_KNOWS"}
	if data, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	j, err := Restore(data, DefaultThresholds(), "boot", b.now)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := j.Observe(Input{Now: b.now, Member: true, Disk: b.next}); v.State != OK {
		t.Errorf("got %+v", v)
	}
}

func TestAnUnknownOverallStateInASnapshotIsReplacedByTheFirstRound(t *testing.T) {
	t.Parallel()
	b := member(t)
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(data), `"state":"OK"`, `"state":"FINE"`, 1)
	j, err := Restore([]byte(newer), DefaultThresholds(), "boot", b.now)
	if err != nil || j.state != Unknown {
		t.Fatalf("restored as %v, %v", j, err)
	}
	if v, _ := j.Observe(Input{Now: b.now, Member: true, Disk: b.next}); v.State != OK {
		t.Errorf("got %+v", v)
	}
}

func TestASnapshotOfASnapshotIsTheSame(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.each(3*time.Second, 800*ms)
	b.want(Slow)
	fsyncOf(b.j).score.value = scoreMost
	first, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	j, err := Restore(first, DefaultThresholds(), "boot", b.now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := j.Snapshot("boot")
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("%v: the first is\n%s, the second\n%s", err, first, second)
	}
}

// TestTheSnapshotFormatIsUnchanged pins the format, so that a different version of the agent can read it.
func TestTheSnapshotFormatIsUnchanged(t *testing.T) {
	t.Parallel()
	b := member(t)
	b.warm()
	b.each(3*time.Second, 800*ms)
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/snapshot.golden", string(data)+"\n")
}

func FuzzRestore(f *testing.F) {
	for _, lead := range []func(*bench){
		func(*bench) {},
		func(b *bench) { b.each(time.Second, ms); b.burst(3000, ms) },
		func(b *bench) { b.member = true; b.each(20*time.Second, 800*ms) },
		func(b *bench) { b.next.InFlight = time.Minute; b.look() },
	} {
		b := newBench(f, DefaultThresholds())
		lead(b)
		data, err := b.j.Snapshot("boot")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		now := 40 * time.Hour
		j, err := Restore(data, DefaultThresholds(), "boot", now)
		if err != nil {
			return
		}
		b := &bench{t: t, j: j, now: now, member: true}
		was, qualified := b.disk(), fsyncOf(j).qualified
		b.look()
		b.burst(60, 200*ms)
		if was == Failed && b.disk() != Failed {
			t.Errorf("FAILED became %s", b.disk())
		}
		if b.result.Qualified && !qualified {
			t.Error("it became qualified")
		}
		if score := b.result.Figures.Score; math.IsNaN(score) || score < 1 || score > 100 {
			t.Errorf("the score is %g", score)
		}
		again, err := b.j.Snapshot("boot")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(again, DefaultThresholds(), "boot", b.now); err != nil {
			t.Errorf("its own snapshot is refused: %v\n%s", err, again)
		}
	})
}
