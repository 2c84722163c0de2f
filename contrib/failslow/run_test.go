// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/health"
)

// some returns the scenarios with these names. Their hosts have learned nothing, because learning takes long.
func some(t *testing.T, names ...string) []scenario {
	t.Helper()
	var list []scenario
	for _, name := range names {
		for _, s := range scenarios() {
			if s.young = true; s.name == name {
				list = append(list, s)
			}
		}
	}
	if len(list) != len(names) {
		t.Fatalf("%d of the scenarios %v exist", len(list), names)
	}
	return list
}

// played runs each scenario with three seeds, and returns the outcomes.
func played(t *testing.T, list []scenario, lives *pasts) []outcome {
	t.Helper()
	all, err := playAll(list, 1, 3, 2*time.Hour, lives)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestARunIsReproducible(t *testing.T) {
	t.Parallel()
	list := some(t, "plus-30ms", "healthy-mixed")
	first, second := played(t, list, newPasts(realJudge)), played(t, list, newPasts(realJudge))
	if !reflect.DeepEqual(first, second) {
		t.Errorf("two runs differ:\n%+v\n%+v", first, second)
	}
	if first[0].detected == first[1].detected && first[1].detected == first[2].detected {
		t.Error("the seeds do not differ")
	}
}

func TestHostsLearnFromTheirPastInTheSameWayEachTime(t *testing.T) {
	t.Parallel()
	s := some(t, "healthy-batch")[0]
	s.young = false
	histories := func() []string {
		lives := newPasts(realJudge)
		lives.days = 1
		if _, err := s.build(1, lives); err != nil {
			t.Fatal(err)
		}
		all, err := lives.of(&s, 1)
		if err != nil || len(all) != 3 || lives.hostDays() != 3 {
			t.Fatalf("%d histories of %d host-days, %v", len(all), lives.hostDays(), err)
		}
		var texts []string
		for _, data := range all {
			h, err := health.DecodeHistory(data)
			if usual, known := h.Median(); err != nil || !known || apart(usual, 2400*time.Microsecond, 0.3) {
				t.Errorf("the usual write takes %s, known: %t, %v", usual, known, err)
			}
			texts = append(texts, string(data))
		}
		return texts
	}
	if first, second := histories(), histories(); !slices.Equal(first, second) {
		t.Errorf("two simulated pasts differ:\n%s\n%s", first, second)
	}
}

func TestSkippedLooksChangeNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plus-30ms", "stalls", "healthy-nvme"} {
		s := some(t, name)[0]
		s.lasts = min(s.lasts, 3*time.Hour)
		for seed := range 2 {
			all := everyRound(t, s, seed, 1)
			some := everyRound(t, s, seed, quietRounds)
			if !reflect.DeepEqual(all, some) {
				t.Errorf("%s, seed %d: looking in every round changes\n%v to\n%v", name, seed, some, all)
			}
		}
	}
}

// everyRound returns all changes of the hosts' health codes, without their times. While nothing can change, one in skip
// rounds is run.
func everyRound(t *testing.T, s scenario, seed, skip int) (changes []health.Code) {
	t.Helper()
	c, err := s.build(seed, newPasts(realJudge))
	if err != nil {
		t.Fatal(err)
	}
	c.skips = skip
	c.run(c.now+warmUp, nil)
	c.hosts[0].disk.fault = s.fault.activate(c.now, c.rng)
	last := map[int]health.Code{}
	c.run(c.now+2*time.Hour, func(time.Duration) {
		for i, h := range c.hosts {
			if h.state.Code != last[i] {
				last[i] = h.state.Code
				changes = append(changes, h.state.Code)
			}
		}
	})
	return changes
}

// blind reports every disk as healthy.
type blind struct{ judge }

func (b blind) Observe(in health.Input) (health.Assessment, []health.Change) {
	a, changes := b.judge.Observe(in)
	return health.Assessment{State: health.OK, Qualified: true, Writes: a.Writes}, changes
}

func TestAJudgeWithoutFindingsHasNoRecall(t *testing.T) {
	t.Parallel()
	list := some(t, "plus-30ms", "plus-150ms")
	all := played(t, list, newPasts(func(limits health.Thresholds) (judge, error) {
		j, err := realJudge(limits)
		return blind{j}, err
	}))
	for _, tally := range summarize(list, all).Scenarios {
		if tally.Found != 0 || tally.Ever != 0 || tally.Recall.Share != 0 || tally.Recall.High > 0.6 {
			t.Errorf("%s: %d of %d found, recall %+v", tally.Name, tally.Found, tally.Faults, tally.Recall)
		}
		if tally.Median >= 0 || tally.Transfers.Count != 0 || tally.Replacements.Count != 0 {
			t.Errorf("%s: median %g, %d transfers", tally.Name, tally.Median, tally.Transfers.Count)
		}
	}
}

// alarmist reports a disk as WARM, without findings, for 8 of every 30 minutes. The phase differs between disks.
type alarmist struct {
	judge
	phase time.Duration
}

func (b alarmist) Observe(in health.Input) (health.Assessment, []health.Change) {
	a, changes := b.judge.Observe(in)
	if (in.Now+b.phase)%(30*time.Minute) < 8*time.Minute {
		a.State, a.Code, a.Gates = health.Warm, health.DiskFsyncWarm, health.Everything
		a.Findings = nil
	}
	return a, changes
}

func TestFalseAlarmsCauseFalseTransfers(t *testing.T) {
	t.Parallel()
	list := some(t, "healthy-plp")
	phase := time.Duration(0)
	all := make([]outcome, 3)
	for i := range all {
		var err error
		all[i], err = play(&list[0], i, 6*time.Hour, newPasts(func(limits health.Thresholds) (judge, error) {
			phase += 10 * time.Minute
			j, err := realJudge(limits)
			return alarmist{j, phase}, err
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	tally := summarize(list, all).Scenarios[0]
	if n := tally.FalseTransfers.Count; n < 10 || n < tally.Transfers.Count*9/10 {
		t.Errorf("%d of %d transfers are false", n, tally.Transfers.Count)
	}
	if tally.FalseTransfers.Low < 1000 {
		t.Errorf("at least %g false transfers per host-year", tally.FalseTransfers.Low)
	}
}

// hysteric reports a disk as permanently SLOW.
type hysteric struct{ judge }

func (b hysteric) Observe(in health.Input) (health.Assessment, []health.Change) {
	a, changes := b.judge.Observe(in)
	a.State, a.Code, a.Gates, a.Recovers = health.Slow, health.DiskFsyncSlow, health.Everything, false
	return a, changes
}

func TestTheHealthStateAloneReplacesNoVoter(t *testing.T) {
	t.Parallel()
	list := some(t, "healthy-plp", "plus-150ms")
	for i, want := range []int{0, 3} {
		all := make([]outcome, 3)
		for seed := range all {
			judges := 0
			var err error
			all[seed], err = play(&list[i], seed, 2*time.Hour, newPasts(func(limits health.Thresholds) (judge, error) {
				j, err := realJudge(limits)
				if judges++; judges == 1 {
					return hysteric{j}, err
				}
				return j, err
			}))
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := summarize(list, all).Scenarios[i].Replaced; got != want {
			t.Errorf("%s: replaced in %d runs, want %d", list[i].name, got, want)
		}
	}
}
