// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"
	"time"
)

// textOf returns the text of a finding; empty if there is none.
func textOf(v Assessment, code Code) string {
	for _, f := range v.Findings {
		if f.Code == code {
			return f.Text
		}
	}
	return ""
}

func TestFindingsFromEtcdOnlyAdvise(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	if len(b.result.Findings) > 0 || len(b.result.NotAvailable) > 0 {
		t.Fatalf("a healthy etcd: %+v", b.result)
	}
	b.etcd.LeaderChanges.Value += 4
	b.etcd.ProposalsFailed.Value += 9
	b.etcd.SlowApplies.Value += 73
	b.etcd.HeartbeatFailures.Value += 6
	b.etcd.DBSize = known(1.75 * (1 << 30))
	b.etcd.Alarms, b.etcd.Errors = known(1), []string{"memberID:1 alarm:NOSPACE"}
	b.etcd.fsyncs, b.etcd.commits = over16ms, over32ms
	b.each(11*time.Minute, ms)
	if b.result.State != OK || b.result.Gates != Nothing {
		t.Errorf("got %s, gates %v", b.result.State, b.result.Gates.Names())
	}
	for code, want := range map[Code]string{
		EtcdLeaderChanges:  "4 leader changes in the last 15 min, limit 3",
		EtcdProposalsFail:  "9 proposals failed in the last 15 min, limit 5",
		EtcdAppliesSlow:    "73 requests took over 100 ms in the last 15 min, limit 50",
		EtcdHeartbeatsLate: "6 heartbeats were sent late in the last 15 min, limit 5",
		EtcdQuotaLow: "database file 1.75 GiB, 88 % of the quota of 2 GiB, limit 80 %; " +
			"1 GiB in use",
		EtcdAlarm: "etcd reports: memberID:1 alarm:NOSPACE",
		EtcdFsyncSlow: "p99 of etcd's WAL fsync between 16 ms and 32 ms over the last 5 min, " +
			"limit 16 ms",
		EtcdCommitSlow: "p99 of etcd's backend commit between 32 ms and " +
			"64 ms over the last 5 min, limit 32 ms",
	} {
		if got := textOf(b.result, code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

func TestAFullDatabaseIsForecastAcrossARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	for i := range 40 { // 20 h
		b.now += 30 * time.Minute
		b.etcd.DBInUse.Value += 10 << 20
		b.look()
		if i == 6 {
			b.reborn()
		}
		if text := textOf(b.result, EtcdQuotaFilling); (text != "") != (i >= 12) {
			t.Fatalf("after %d half hours: %q", i, text)
		}
	}
	if got := textOf(b.result, EtcdQuotaFilling); got != "database file 1.2 GiB, 60 % of the quota "+
		"of 2 GiB, limit 80 %; 1.39 GiB in use; full in about 31 hours, limit 3 days" {
		t.Errorf("got %q", got)
	}
	for range 40 {
		b.now += 30 * time.Minute
		b.look()
	}
	if text := textOf(b.result, EtcdQuotaFilling); text != "" {
		t.Errorf("a database that has stopped growing: %q", text)
	}
}

func TestADatabaseWithoutAQuotaIsNotChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.etcd.Quota = known(0)
	b.each(time.Second, ms)
	for _, a := range b.result.NotAvailable {
		if a.Check == "etcd-quota" && a.Why == "etcd has no quota set" {
			return
		}
	}
	t.Errorf("not available: %+v", b.result.NotAvailable)
}

func TestARestartedEtcdIsNotBlamedForThePreviousOne(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.etcd.fsyncs = over16ms
	b.each(11*time.Minute, ms)
	if textOf(b.result, EtcdFsyncSlow) == "" {
		t.Fatal("its slow fsyncs are not found")
	}
	b.etcd = wellEtcd()
	b.etcd.LeaderChanges = known(1) // the counter was 4 before etcd restarted
	b.each(20*time.Minute, ms)
	if len(b.result.Findings) > 0 {
		t.Errorf("the findings are %+v", b.result.Findings)
	}
}

func TestADefragmentedDatabaseThatStillFillsIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	for i := range 40 { // 20 h
		b.now += 30 * time.Minute
		b.etcd.DBInUse.Value += 10 << 20
		b.etcd.DBSize = known(1.9 * (1 << 30))
		if b.look(); textOf(b.result, EtcdQuotaLow) == "" {
			t.Fatalf("after %d half hours there is no finding", i)
		}
	}
	b.etcd.DBSize = b.etcd.DBInUse
	b.each(time.Second, ms)
	if textOf(b.result, EtcdQuotaFilling) == "" || textOf(b.result, EtcdQuotaLow) != "" {
		t.Errorf("at 70 %% of its quota and full in days: %+v", b.result.Findings)
	}
}

func TestAMissingLeaderIsFoundAfterLongerThanAnElection(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.etcd.HasLeader = known(0)
	b.each(20*time.Second, ms)
	if got := b.found(EtcdNoLeader); got != "" {
		t.Errorf("in an election: %q", got)
	}
	b.each(15*time.Second, ms)
	if got := b.found(EtcdNoLeader); got == "" || b.result.State != OK || b.result.Gates != Nothing {
		t.Errorf("found %q, health %s", got, b.result.State)
	}
}

func TestLastingSlowFsyncsAreFoundButOneBurstIsNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.member = true
	b.each(10*time.Minute, ms)
	b.etcd.fsyncs = over32ms
	b.each(time.Minute, ms)
	b.etcd.fsyncs = 0
	b.each(30*time.Minute, ms)
	for _, c := range b.changes {
		if c.Code == EtcdFsyncSlow {
			t.Errorf("found after a minute: %+v", c)
		}
	}
	b.etcd.fsyncs = over32ms
	b.each(11*time.Minute, ms)
	if textOf(b.result, EtcdFsyncSlow) == "" {
		t.Error("not found after eleven minutes")
	}
}

func TestFewWritesOfEtcdAreNeitherHealthyNorUnhealthy(t *testing.T) {
	t.Parallel()
	var k Recent
	h := wellEtcd().WALFsync
	for at := time.Duration(0); at <= 2*etcdWritesSpan; at += 30 * time.Second {
		h.Counts = append([]uint64{}, h.Counts...)
		h.Counts[over32ms] += 29 // 290 in a span, or 319 if both of its ends count
		f, _ := slowest(&k, at, h)
		if f.Known || at > etcdWritesSpan && !strings.Contains(f.Absent, "too few writes") {
			t.Errorf("after %s: %+v", at, f)
		}
	}
}

func TestImpossibleDatabaseSizesAreRefused(t *testing.T) {
	t.Parallel()
	for what, memory := range map[string]string{
		"out of order":  `[{"at":5,"n":1},{"at":4,"n":1}]`,
		"in the future": `[{"at":50,"n":1}]`,
		"negative":      `[{"at":5,"n":-1}]`,
		"too many":      "[" + strings.Repeat(`{"at":5,"n":1},`, quotaMarks) + `{"at":6,"n":1}]`,
		"unknown field": `[{"at":5,"m":1}]`,
	} {
		if err := (&quota{}).recall([]byte(memory), 10, 20); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestReportsOfEtcdAreShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 200)
	b := newBench(t, DefaultThresholds())
	b.member, b.etcd.Alarms, b.etcd.Errors = true, known(6), []string{"x" + long, "b", "c", "d", "e", "f"}
	b.each(10*time.Minute, ms)
	want := "etcd reports: x" + strings.Repeat("é", 59) + "…; etcd reports: b; etcd reports: c; and 3 more"
	if got := b.found(EtcdAlarm); got != want {
		t.Errorf("got %q", got)
	}
}
