//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// rounds is the number of times a rollout restarts or reboots all members, or the quorum is lost. The ways to restart
// members without quorumd are for comparison, and run only a few rounds.
var rounds = flag.Int("lab.rounds", 1, "number of times all members are restarted, or a majority is lost")

const (
	// roundsToCompare is the maximum number of rounds in which members are also restarted without quorumd, for
	// comparison.
	roundsToCompare = 5
	// roundsToJudge is the minimum number of rounds for judging the gaps: fewer rounds, in parallel with other tests,
	// prove little.
	roundsToJudge = 10
	// usualGap is the longest gap that a client should see in nine of ten rounds while the members are restarted; no
	// round may exceed longestGap. An election without a transfer by the old leader takes at least 1 s.
	usualGap   = 150 * time.Millisecond
	longestGap = 500 * time.Millisecond
	// syncEvery is how often the test checks whether voters are in sync; syncWithin is how soon a voter in sync
	// answers.
	syncEvery  = 25 * time.Millisecond
	syncWithin = 250 * time.Millisecond
)

// manner is a way to restart every member of a cluster.
type manner struct {
	name    string
	rollout bool // a rollout of quorumd, whose result is judged
	restart func(f *fleet, voters []*lab.Host)
}

// manners are the ways in which an operator can restart members without quorumd, and the rollout of quorumd.
func manners() []manner {
	each := func(line string) func(f *fleet, voters []*lab.Host) {
		return func(f *fleet, voters []*lab.Host) {
			for _, h := range voters {
				f.shell(h, line)
			}
		}
	}
	return []manner{
		{name: "systemctl restart, without waiting", restart: each("systemctl --no-block restart etcd")},
		{name: "systemctl restart, each waits for active", restart: each("systemctl restart etcd")},
		{
			name:    "SIGKILL, each waits for active",
			restart: each("systemctl kill --signal=KILL etcd; systemctl restart etcd"),
		},
		{name: "quorumctl rollout start restart", rollout: true, restart: func(f *fleet, voters []*lab.Host) {
			f.runRollout(control.RolloutRequest{Work: policy.WorkRestart, Hosts: names(voters)})
		}},
	}
}

// outcome is the effect of one round of restarts on the writes and on the voters.
type outcome struct {
	acked, failed int
	retried       int           // acknowledged writes that were sent more than once
	gap           time.Duration // the longest time without an acknowledged write
	slowest       time.Duration // the longest time that an acknowledged write took
	fewer         time.Duration // how long at least one voter was not in sync
}

func (o *outcome) note(r testbed.LoadReport) {
	o.acked, o.failed, o.retried, o.gap, o.slowest = r.Acked, r.Failed, r.Retried, r.LongestGap, r.Slowest
}

// TestARolloutOfRestartsFailsNoWrite restarts three voters in every manner, under writes of a client that retries for 5
// s. It prints the figures of all manners; quorumd's rollout must fail no write.
func TestARolloutOfRestartsFailsNoWrite(t *testing.T) {
	f := formedFleetRunning(t)
	f.compareManners()
}

// TestARolloutOverFiveVotersFailsNoWrite does the same with five voters.
func TestARolloutOverFiveVotersFailsNoWrite(t *testing.T) {
	f := formedFleetRunning(t)
	f.check(f.Each(func(h *lab.Host) error {
		s := h.Settings()
		s["cluster"]["voters"], s["cluster"]["standbys"] = 5, 0
		if err := h.Configure("manage", s); err != nil {
			return err
		}
		_, err := h.Shell(t.Context(), "systemctl restart quorumd")
		return err
	}))
	f.within(2*bound, "there are five voters", func() bool { return f.has(5, 0) && f.isIdle() })
	f.waitIdle()
	f.compareManners()
}

// compareManners restarts all voters in every manner, in alternation, so that all manners meet the same conditions.
func (f *fleet) compareManners() {
	f.t.Helper()
	seen := map[string][]outcome{}
	for round := range *rounds {
		for _, m := range manners() {
			if round >= roundsToCompare && !m.rollout {
				continue
			}
			got := f.restartAll(m)
			seen[m.name] = append(seen[m.name], got)
			f.t.Logf("round %d, %s: %+v", round+1, m.name, got)
		}
	}
	var names []string
	for _, m := range manners() {
		names = append(names, m.name)
		if m.rollout {
			judge(f.t, m.name, seen[m.name])
		}
	}
	f.t.Logf("writes while all members are restarted:\n%s", outcomeTable(names, seen))
}

// restartAll restarts all voters in a manner, under writes, and waits until all are idle again.
func (f *fleet) restartAll(m manner) outcome {
	f.t.Helper()
	before := f.etcdPIDs()
	var got outcome
	report := f.underWrites(func(voters []*lab.Host) {
		stop := watchSync(f.t.Context(), voters)
		defer func() { got.fewer = stop() }()
		m.restart(f, voters)
		f.eventually("all voters are in sync", func() bool { return inSync(f.t.Context(), voters) })
	})
	got.note(report)
	after := f.etcdPIDs()
	for _, h := range f.role(policy.RoleVoter) {
		if after[h.Name] == before[h.Name] {
			f.t.Errorf("%s: etcd on %s was not restarted", m.name, h.Name)
		}
	}
	f.waitIdle()
	return got
}

// judge compares the rounds of a rollout with the promised limits.
func judge(t *testing.T, name string, all []outcome) {
	t.Helper()
	long := 0
	for i, o := range all {
		if o.failed > 0 {
			t.Errorf("%s, round %d: %d writes failed", name, i+1, o.failed)
		}
		if o.gap > usualGap {
			long++
		}
		if len(all) >= roundsToJudge && o.gap > longestGap {
			t.Errorf("%s, round %d: no write was acknowledged for %v", name, i+1, o.gap)
		}
	}
	if len(all) >= roundsToJudge && long*10 > len(all) {
		t.Errorf("%s: in %d of %d rounds no write was acknowledged for more than %v", name, long, len(all), usualGap)
	}
}

// outcomeTable formats the figures of some manners.
func outcomeTable(names []string, seen map[string][]outcome) string {
	var table strings.Builder
	line := func(cells ...any) { fmt.Fprintf(&table, "%-42v %6v %7v %7v %7v  %7v %7v  %7v %7v\n", cells...) }
	line("MANNER", "ROUNDS", "WRITES", "FAILED", "RETRIED", "GAP", "WORST", "FEWER", "WORST")
	for _, name := range names {
		acked, failed, retried := 0, 0, 0
		var gaps, fewer []time.Duration
		for _, o := range seen[name] {
			acked, failed, retried = acked+o.acked, failed+o.failed, retried+o.retried
			gaps, fewer = append(gaps, o.gap.Round(time.Millisecond)), append(fewer, o.fewer.Round(10*time.Millisecond))
		}
		slices.Sort(gaps)
		slices.Sort(fewer)
		middle, last := len(gaps)/2, len(gaps)-1
		line(name, len(gaps), acked, failed, retried, gaps[middle], gaps[last], fewer[middle], fewer[last])
	}
	return table.String()
}

// watchSync polls the voters. The returned function ends that, and returns how long at least one voter was not in sync.
func watchSync(ctx context.Context, voters []*lab.Host) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	fewer := make(chan time.Duration, 1)
	go func() {
		tick := time.NewTicker(syncEvery)
		defer tick.Stop()
		var total time.Duration
		for last := time.Now(); ctx.Err() == nil; <-tick.C {
			all, now := inSync(ctx, voters), time.Now()
			if !all && ctx.Err() == nil {
				total += now.Sub(last)
			}
			last = now
		}
		fewer <- total
	}()
	return func() time.Duration {
		cancel()
		return <-fewer
	}
}

// inSync reports whether every voter itself answers a linearizable read: it has then applied all committed entries.
func inSync(ctx context.Context, voters []*lab.Host) bool {
	ctx, cancel := context.WithTimeout(ctx, syncWithin)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answers := make(chan bool, len(voters))
	for _, h := range voters {
		go func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.ClientURL()+"/health", http.NoBody)
			if err != nil {
				answers <- false
				return
			}
			answer, err := client.Do(request)
			if err == nil {
				_ = answer.Body.Close()
			}
			answers <- err == nil && answer.StatusCode == http.StatusOK
		}()
	}
	all := true
	for range voters {
		all = <-answers && all
	}
	return all
}
