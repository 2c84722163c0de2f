// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// compared returns a bench of a member whose writes have taken the given time for a week, with two other voters whose
// writes take the same time.
func compared(t testing.TB, usual time.Duration) *bench {
	t.Helper()
	b := newBench(t, DefaultThresholds())
	b.member, b.peers = true, peersAt(usual, 0)
	b.j.UseHistory(historyOf(usual, 0))
	b.j.compared.pace.wide = 2 * time.Minute
	b.each(10*time.Minute, usual)
	if b.result.State != OK {
		t.Fatalf("%s: %s", b.result.State, b.result.Text)
	}
	return b
}

// slower returns the finding of the comparison, if there is one.
func (b *bench) slower() (Finding, bool) {
	for _, f := range b.result.Findings {
		if f.Code == DiskSlowerThanPeers {
			return f, true
		}
	}
	return Finding{}, false
}

// untilSlower lets writes take the given latency until there is a finding or the time is over. It returns after what
// time the finding began, and whether there is one.
func (b *bench) untilSlower(within, latency time.Duration) (time.Duration, bool) {
	for at := time.Second; at <= within; at += time.Second {
		b.each(time.Second, latency)
		if _, found := b.slower(); found {
			return at, true
		}
	}
	return 0, false
}

func comparisonEdges() []edge {
	usually := func(b *bench, usual time.Duration) {
		b.peers = peersAt(usual, 0)
		b.j.UseHistory(historyOf(usual, 0))
		b.j.compared.rung, b.j.compared.tailed = 0, false
		b.j.compared.pace.wide = 2 * time.Minute
	}
	episode := func(b *bench) { b.each(time.Second, 101*ms); b.each(20*time.Second, quiet) }
	return []edge{
		{
			"the median of the writes of the last 40 s",
			func(b *bench) { usually(b, 28*ms/10); b.each(300*time.Second, quiet) },
			func(b *bench) { b.each(time.Second, quiet) },
		},
		{
			"there are 8 or more episodes",
			func(b *bench) {
				usually(b, quiet)
				for range tailsFewest - 1 {
					episode(b)
				}
			},
			func(b *bench) { b.each(time.Second, 101*ms) },
		},
		{
			"for 5 min, the median has been below",
			func(b *bench) {
				usually(b, quiet)
				b.each(time.Minute, 8*quiet)
				b.j.compared.rung = 8
				b.put(b.j.checks[4], Warm)
				for b.j.compared.times > 0 {
					b.each(time.Second, quiet)
				}
				b.each(5*time.Minute-2*time.Second, quiet)
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
		{
			"more than 1 % of the writes are too slow",
			func(b *bench) {
				usually(b, 11*ms)
				for range 10 {
					b.each(time.Second, 11*ms)
					b.each(time.Second, quiet)
				}
			},
			func(b *bench) { b.each(time.Second, 11*ms) },
		},
		{
			"at most 1 % of the writes are too slow, or",
			func(b *bench) {
				b.j.checks[5].evidence.(*slowAsPeers).lastBad = b.now
				b.each(5*time.Minute-time.Second, quiet)
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
	}
}

func TestADiskThatBecomesSlowerThanTheOthersAndItsPastIsFound(t *testing.T) {
	t.Parallel()
	for times, within := range map[int]time.Duration{
		8: time.Minute, 4: 90 * time.Second, 3: 150 * time.Second, 2: 6 * time.Minute,
	} {
		b := compared(t, ms)
		if at, found := b.untilSlower(within, time.Duration(times)*ms); !found {
			t.Errorf("%d times slower: not found within %s; %s", times, within, b.j.compared.text())
		} else if at < within/3 {
			t.Errorf("%d times slower: found after %s already", times, at)
		}
		if b.result.State != Warm || b.result.Gates != Joins|Leadership {
			t.Errorf("it is %s and gates %v", b.result.State, b.result.Gates.Names())
		}
	}
}

func TestTheFindingIsOneSentenceForOperators(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	for range HistoryDays {
		b.j.compared.history.AddSpell(b.wall.Add(b.now), 3, 3*time.Minute)
	}
	b.peers = peersAt(775*time.Microsecond, 0)
	if at, found := b.untilSlower(10*time.Minute, 31*ms/10); !found || at < 270*time.Second {
		t.Fatalf("found: %v after %s", found, at)
	}
	f, _ := b.slower()
	want := "n1's writes take 4× as long as the other voters' and 3.2× as long as its own in the last week (3.1 ms " +
		"now, "
	if !strings.HasPrefix(f.Text, want) || !strings.HasSuffix(f.Text, "; at this hour that never lasted over 3 min") {
		t.Errorf("got %s", f.Text)
	}
}

func TestAWorkloadThatSlowsAllVotersDownIsNoFinding(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.peers = peersAt(8*ms, 0)
	if at, found := b.untilSlower(time.Hour, 8*ms); found {
		t.Errorf("found after %s: %s", at, b.result.Text)
	}
}

func TestADiskThatHasAlwaysBeenSlowerIsNoFinding(t *testing.T) {
	t.Parallel()
	b := compared(t, 8*ms)
	b.peers = peersAt(ms, 0)
	if at, found := b.untilSlower(time.Hour, 8*ms); found {
		t.Errorf("found after %s: %s", at, b.result.Text)
	}
}

func TestAnImmaterialMultipleIsNoFinding(t *testing.T) {
	t.Parallel()
	b := compared(t, 100*time.Microsecond)
	if at, found := b.untilSlower(time.Hour, 599*time.Microsecond); found {
		t.Errorf("found after %s: %s", at, b.result.Text)
	}
}

func TestOneRecordNeitherCausesNorPreventsAFinding(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]PeerWrites{
		"very fast": {Host: "n2", P50: 1, P90: 1},
		"very slow": {Host: "n2", P50: writeLongest, P90: writeLongest},
	} {
		b := compared(t, ms)
		b.peers.All[0] = lie
		if at, found := b.untilSlower(time.Hour, ms); found {
			t.Errorf("a %s record causes a finding after %s: %s", name, at, b.result.Text)
		}
		if _, found := b.untilSlower(time.Minute, 8*ms); !found {
			t.Errorf("a %s record prevents a finding", name)
		}
	}
}

func TestImpossibleRecordsCountAsNone(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]PeerWrites{
		"nothing":         {Host: "n2"},
		"negative":        {Host: "n2", P50: -ms, P90: ms},
		"p90 below p50":   {Host: "n2", P50: 2 * ms, P90: ms},
		"too long":        {Host: "n2", P50: ms, P90: writeLongest + 1},
		"many tails":      {Host: "n2", P50: ms, P90: ms, Tails: tailsMost + 1},
		"negative tails":  {Host: "n2", P50: ms, P90: ms, Tails: -1},
		"negative age":    {Host: "n2", P50: ms, P90: ms, Age: -1},
		"too old":         {Host: "n2", P50: ms, P90: ms, Age: peersOldest + 1},
		"the largest int": {Host: "n2", P50: 1<<63 - 1, P90: 1<<63 - 1},
	} {
		b := compared(t, ms)
		b.peers.All[0] = p
		if at, found := b.untilSlower(10*time.Minute, 8*ms); found {
			t.Errorf("%s: found after %s although only one voter publishes", name, at)
		}
		if why := b.j.compared.absent(); !strings.HasPrefix(why, "fewer than two other voters have published") {
			t.Errorf("%s: not available because %q", name, why)
		}
	}
}

func TestAHabitAtThisHourIsNoFindingUntilItLastsLonger(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.j.compared.history.AddSpell(b.wall.Add(b.now), 8, 4*time.Minute)
	b.j.compared.history.AddSpell(b.wall.Add(b.now), 6, 4*time.Minute)
	b.j.compared.history.AddSpell(b.wall.Add(b.now), 4, 4*time.Minute)
	b.j.compared.history.AddSpell(b.wall.Add(b.now), 3, 4*time.Minute)
	b.j.compared.history.AddSpell(b.wall.Add(b.now), 2, 4*time.Minute)
	if at, found := b.untilSlower(10*time.Minute, 8*ms); !found || at < 6*time.Minute || at > 7*time.Minute {
		t.Errorf("found: %v after %s, want 1.5 times four minutes and at most one more", found, at)
	}
}

func TestRepeatedFaultsEndLaterEachTime(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	var lasted []time.Duration
	for range 3 {
		if _, found := b.untilSlower(time.Minute, 8*ms); !found {
			t.Fatal("not found")
		}
		from := b.now
		for _, found := b.slower(); found; _, found = b.slower() {
			b.each(time.Second, ms)
		}
		lasted = append(lasted, (b.now - from).Round(time.Minute))
	}
	if lasted[1] < 9*time.Minute || lasted[2] < 18*time.Minute {
		t.Errorf("they lasted %s", lasted)
	}
}

func TestSlowEpisodesThatNoOtherVoterHasAreFound(t *testing.T) {
	t.Parallel()
	hour := func(b *bench) {
		for range 6 {
			b.each(time.Second, 800*ms/2)
			b.each(10*time.Minute-time.Second, ms)
		}
	}
	b := compared(t, ms)
	hour(b)
	if _, found := b.slower(); found {
		t.Error("found after six episodes")
	}
	hour(b)
	if f, found := b.slower(); !found || !strings.Contains(f.Text, "episodes of writes over 100 ms within 2 h") {
		t.Errorf("found: %v, %s", found, f.Text)
	}
	others := compared(t, ms)
	others.peers = peersAt(ms, 4)
	hour(others)
	hour(others)
	if _, found := others.slower(); found {
		t.Error("found although the others have a third as many")
	}
}

func TestAHostAsksOnlyBeyondItsHabit(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.peers = peersAt(0, 0)
	if b.result.AsksPeers {
		t.Error("it asks at rest")
	}
	b.each(25*time.Second, 3*ms)
	if b.result.AsksPeers {
		t.Error("it asks at once")
	}
	b.each(2*time.Minute, 3*ms)
	if !b.result.AsksPeers {
		t.Error("it does not ask before the finding is due")
	}
	b.each(time.Hour, ms)
	if b.result.AsksPeers {
		t.Error("it does not stop asking")
	}
}

// TestWritesThatAreSlowOnAllVotersOnlyAdvise also covers that the limit of the fsync check applies if fewer than two
// other voters exist or publish.
func TestWritesThatAreSlowOnAllVotersOnlyAdvise(t *testing.T) {
	t.Parallel()
	oftenSlow := func(b *bench) {
		for range 20 {
			b.each(19*time.Second, 4*ms)
			b.each(time.Second, 11*ms)
		}
	}
	b := compared(t, 4*ms)
	oftenSlow(b)
	if b.result.State != OK || !slices.ContainsFunc(b.result.Findings, func(f Finding) bool {
		return f.Code == DiskSlowAsPeers && f.Gates == Nothing
	}) {
		t.Errorf("got %s %+v", b.result.State, b.result.Findings)
	}
	b.peers.All = b.peers.All[:1]
	oftenSlow(b)
	if b.result.Code != DiskFsyncWarm {
		t.Errorf("with one other voter: %s %s", b.result.State, b.result.Code)
	}
	silent := compared(t, 4*ms)
	silent.peers, silent.j.compared.agreedAt = peersAt(0, 0), 0
	oftenSlow(silent)
	if silent.result.Code != DiskFsyncWarm {
		t.Errorf("without an answer: %s %s", silent.result.State, silent.result.Code)
	}
}

func TestARestartedAgentKeepsTheFinding(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	if _, found := b.untilSlower(time.Minute, 8*ms); !found {
		t.Fatal("not found")
	}
	data, err := b.j.Snapshot("boot")
	if err != nil {
		t.Fatal(err)
	}
	history := b.j.compared.history
	b.now += 3 * time.Second
	if b.j, err = Restore(data, b.limits, "boot", b.now); err != nil {
		t.Fatal(err)
	}
	b.j.UseHistory(history)
	b.each(time.Minute, 8*ms)
	if f, found := b.slower(); !found || !strings.Contains(f.Text, "8") {
		t.Errorf("found: %v %s", found, f.Text)
	}
	b.each(5*time.Minute-time.Second, ms)
	if _, found := b.slower(); !found {
		t.Error("it ended too early")
	}
}

// BenchmarkCompare measures the comparison without the other checks, with new input every two seconds.
func BenchmarkCompare(b *testing.B) {
	m := compared(b, ms)
	c, now := m.j.compared, m.now
	for b.Loop() {
		now += 2 * time.Second
		c.observe(Input{
			Now: now, Wall: m.wall.Add(now), Peers: m.peers,
			Disk: DiskReading{Samples: []disk.Sample{{End: now - time.Second, Latency: ms}, {End: now, Latency: ms}}},
		})
	}
}

// answering lets the writes take these times in turn, for that span. The other voters publish only while this host
// asks.
func (b *bench) answering(span, others time.Duration, own ...time.Duration) {
	for i := range int(span / time.Second) {
		b.peers = peersAt(0, 0)
		if b.result.AsksPeers {
			b.peers = peersAt(others, 0)
		}
		b.each(time.Second, own[i%len(own)])
	}
}

// tenthSlow returns the write times of a disk with one slow write in seven.
func tenthSlow(rest time.Duration) []time.Duration {
	return []time.Duration{rest, rest, rest, rest, rest, rest, 40 * ms}
}

func TestADiskWithManySlowWritesIsNotExcusedByItsMedian(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	b.answering(10*time.Minute, ms, tenthSlow(ms)...)
	if b.result.Code != DiskFsyncWarm {
		t.Errorf("%s %s: %+v", b.result.State, b.result.Code, b.result.Findings)
	}
}

func TestAnAgreementDoesNotCoverALaterFault(t *testing.T) {
	t.Parallel()
	b := compared(t, 4*ms)
	burst := slices.Repeat([]time.Duration{4 * ms}, 20)
	burst[19] = 11 * ms
	b.answering(10*time.Minute, 4*ms, burst...)
	if b.result.State != OK || b.j.compared.agreedAt == 0 {
		t.Fatalf("no agreement: %s %+v", b.result.State, b.result.Findings)
	}
	b.answering(10*time.Minute, 4*ms, tenthSlow(4*ms)...)
	if b.result.Code != DiskFsyncWarm {
		t.Errorf("%s %s: %+v", b.result.State, b.result.Code, b.result.Findings)
	}
}

func TestAGapInTheSamplesNeitherEndsNorLengthensASpell(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	gaps := func(of time.Duration) (time.Duration, bool) {
		for at := time.Duration(0); at < 20*time.Minute; at += 35*time.Second + of {
			if _, found := b.untilSlower(35*time.Second, 3*ms); found {
				return at, true
			}
			b.now += of // no sample, as under CPU starvation
			b.look()
		}
		return 0, false
	}
	if at, found := gaps(time.Minute); !found || at < 90*time.Second {
		t.Errorf("with gaps of a minute: found %v, after %s", found, at)
	}
	b = compared(t, ms)
	if at, found := gaps(6 * time.Minute); found {
		t.Errorf("with gaps of six minutes: found after %s", at)
	}
}

func TestAFalseRecordOfTwoNeitherCausesNorPreventsAFinding(t *testing.T) {
	t.Parallel()
	lie := PeerWrites{Host: "n2", P50: time.Microsecond, P90: time.Microsecond}
	b := compared(t, ms)
	b.peers = peersAt(8*ms, 0)
	b.peers.All[0] = lie
	if at, found := b.untilSlower(time.Hour, 8*ms); found {
		t.Errorf("a load that all share: found after %s: %s", at, b.result.Text)
	}
	b = compared(t, ms)
	b.peers.All[0] = lie
	if _, found := b.untilSlower(time.Minute, 8*ms); !found {
		t.Error("the false record prevents a finding")
	}
}

func TestALoadThatAllVotersShareMakesAHostAskOnce(t *testing.T) {
	t.Parallel()
	b := compared(t, ms)
	asks, before := 0, false
	for range 3600 {
		b.answering(time.Second, 8*ms, 8*ms)
		if b.result.AsksPeers && !before {
			asks++
		}
		before = b.result.AsksPeers
	}
	if asks != 1 {
		t.Errorf("it began to ask %d times in an hour", asks)
	}
}

func TestAStreakThatTheOthersShareIsNoFinding(t *testing.T) {
	t.Parallel()
	b := compared(t, 8*ms)
	b.answering(30*time.Minute, 11*ms, 11*ms)
	if b.result.State != OK {
		t.Errorf("%s: %s", b.result.State, b.result.Text)
	}
}
