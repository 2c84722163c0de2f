// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build prometheus && faultfs

package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// playedTable is the page for operators that contains the results.
const playedTable = "../docs/alert-tests.md"

var updateTable = flag.Bool("update", false, "write the table of alerts")

// steady is how long the set of alerts must stay the same to count as complete. It is longer than every "for" that
// shortenWaits sets, except that of QuorumdBackupFailed (20 s), which none of these faults causes.
const steady = 15 * time.Second

// fault is a fault to inject, with the alerts that notify operators and those that Alertmanager inhibits.
type fault struct {
	row       int // the fault's row in the table
	name      string
	does      func()
	from      time.Time // when the fault begins; zero if does injects it at once
	notified  []string
	inhibited []string
	may       []string // alerts that may also notify, depending on what clients do
}

// act is a fault and the alerts that followed it.
type act struct {
	fault
	o      *observed
	raised map[string]time.Duration // from the fault to the notification of an alert
	over   time.Duration            // from the repair to the end of all alerts
}

// name returns the name of an alert and the host or reason that it is about.
func (o *observed) name(alert map[string]string) string {
	about := alert["reason"] + alert["code"] + alert["name"]
	for _, h := range o.hosts {
		if about == "" && h.Options.Metrics == alert["instance"] {
			about = h.Options.Name
		}
	}
	return strings.TrimSpace(alert["alertname"] + " " + about)
}

// names returns the names of alerts, sorted and without duplicates.
func (o *observed) names(alerts []map[string]string) []string {
	var list []string
	for _, a := range alerts {
		list = append(list, o.name(a))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// isStarvation reports whether an alert may come from CPU starvation of etcd. The machine runs two clusters and
// everything that scrapes them, so these findings are true but not caused by the fault under test.
func isStarvation(name string) bool {
	return slices.Contains([]string{
		"QuorumdFinding ETCD_HEARTBEATS_LATE", "QuorumdFinding ETCD_APPLIES_SLOW",
		"QuorumdFinding ETCD_PROPOSALS_FAIL", "QuorumdFinding ETCD_LEADER_CHANGES",
		"QuorumdFinding CPU_STARVED", "QuorumdFinding CPU_PRESSURE",
	}, name)
}

// play injects a fault and waits until exactly the expected alerts have sent notifications or are inhibited, and the
// set stays the same. No other alert may send a notification in between, except those in f.may and those of CPU
// starvation.
func (o *observed) play(f fault) *act {
	o.t.Helper()
	a := &act{fault: f, o: o, raised: map[string]time.Duration{}}
	slices.Sort(a.notified)
	slices.Sort(a.inhibited)
	began := time.Now()
	if f.does != nil {
		f.does()
	}
	if !f.from.IsZero() {
		began = f.from
	}
	var since time.Time
	last := ""
	what := fmt.Sprintf("%s: operators are notified of %q, and %q is inhibited", f.name, f.notified, f.inhibited)
	o.within(bound, what, func() bool {
		notified, inhibited := o.names(o.pager.notified()), o.names(o.pager.inhibited())
		notified = slices.DeleteFunc(notified, func(name string) bool {
			return slices.Contains(f.may, name) || isStarvation(name)
		})
		inhibited = slices.DeleteFunc(inhibited, isStarvation)
		if now := fmt.Sprintf("notified %q, inhibited %q", notified, inhibited); now != last {
			o.t.Logf("%s: %5.1f s: %s", f.name, time.Since(began).Seconds(), now)
			last = now
		}
		for _, alert := range o.pager.notified() {
			name := o.name(alert)
			_, known := a.raised[name]
			if !known && slices.Contains(notified, name) && !slices.Contains(f.notified, name) {
				o.t.Errorf("%s: operators are notified of %v", f.name, alert)
			}
		}
		for _, name := range notified {
			if _, known := a.raised[name]; !known {
				a.raised[name] = time.Since(began)
			}
		}
		if !slices.Equal(notified, a.notified) || !slices.Equal(inhibited, a.inhibited) {
			since = time.Time{}
			return false
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) > steady
	})
	return a
}

// repair repairs the fault and waits until all alerts are resolved.
func (a *act) repair(does func()) {
	a.o.t.Helper()
	began := time.Now()
	does()
	a.o.waitQuiet()
	a.over = time.Since(began)
}

// waitQuiet waits until no alert fires, notifies or is inhibited.
func (o *observed) waitQuiet() {
	o.t.Helper()
	var last []string
	o.within(bound, "no alert is active", func() bool {
		all := o.names(slices.Concat(o.query(`ALERTS{alertstate="firing"}`), o.pager.notified(), o.pager.inhibited()))
		all = slices.DeleteFunc(all, isStarvation)
		if !slices.Equal(all, last) {
			o.t.Logf("active alerts: %q", all)
			last = all
		}
		return len(all) == 0
	})
}

func TestARealPrometheusHasEveryEtcdRuleThatAnOperationInhibits(t *testing.T) {
	t.Parallel()
	config, err := os.ReadFile("../prometheus/alertmanager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mixin, err := os.ReadFile(etcdMixin)
	if err != nil {
		t.Fatal(err)
	}
	silenced := regexp.MustCompile(`\betcd[A-Z]\w+`).FindAllString(string(config), -1)
	for _, name := range silenced {
		if !strings.Contains(string(mixin), `"alert": "`+name+`"`) {
			t.Errorf("etcd has no rule %s", name)
		}
		if strings.Contains(name, "NoLeader") || strings.Contains(name, "InsufficientMembers") {
			t.Errorf("%s is inhibited, although it reports failing writes", name)
		}
	}
	if len(silenced) == 0 {
		t.Error("no rule of etcd's is inhibited")
	}
}

func TestARealPrometheusAndAlertmanagerMatchTheAlertTable(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var acts []*act
	add := func(more ...*act) {
		mu.Lock()
		defer mu.Unlock()
		acts = append(acts, more...)
	}
	t.Run("worlds", func(t *testing.T) {
		t.Run("an operation", func(t *testing.T) {
			t.Parallel()
			add(playMaintenance(t)...)
		})
		t.Run("a loss", func(t *testing.T) {
			t.Parallel()
			add(playLosses(t)...)
		})
	})
	if !t.Failed() {
		checkTable(t, acts)
	}
}

// playMaintenance stops an agent, and keeps a host in maintenance for longer than announced.
func playMaintenance(t *testing.T) []*act {
	t.Helper()
	checks := operatorsChecks(t)
	w := newWorld(t, worldOptions{hosts: 4, voters: 3, each: func(i int, o *testbed.HostOptions) {
		if i == 4 {
			maps.Copy(o.Set, map[string]string{"checks.dir": checks, "checks.interval": "1s", "checks.timeout": "1s"})
		}
	}})
	w.start(w.hosts[:3]...)
	w.bootstrap()
	w.within(formation, "there are 3 voters", func() bool { return w.has(3, 0) && !w.busy() })
	spare := w.hosts[3]
	w.start(spare)
	w.waitRolesAgree()
	w.eventually("an external check warns", func() bool {
		s, ok := spare.status()
		return ok && slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool {
			return f.Code == "CHECK_SMOKE"
		})
	})
	me().ctl(spare, "health", "mute", "CHECK_SMOKE", "--reason", "known").check(t, "health mute", 0)
	o := newObserved(t, w)
	o.waitQuiet() // a muted finding does not notify

	stopped := o.play(fault{
		row: 1, name: "an agent is stopped", does: spare.stop,
		notified: []string{"QuorumdAgentAbsent " + spare.Options.Name},
	})
	stopped.repair(func() { w.start(spare) })

	voter := w.hosts[1]
	down := o.play(fault{
		row: 2, name: "a voter is down for its maintenance", does: func() {
			me().ctl(voter, "maintenance", "on", "--reason", "a test", "--for", "1m").check(t, "maintenance on", 0)
		},
		inhibited: []string{"QuorumdOperationInFlight", "etcdMembersDown"},
	})
	o.checkDashboard()
	s, _ := voter.status()
	if s.Maintenance == nil {
		t.Fatal("the maintenance ends early")
	}
	overdue := o.play(fault{
		row: 3, name: "that maintenance is overdue", from: s.Maintenance.Until,
		notified: []string{"QuorumdOperationOverdue", "etcdMembersDown"},
	})
	overdue.repair(func() { me().ctl(voter, "maintenance", "off").check(t, "maintenance off", 0) })
	return []*act{stopped, down, overdue}
}

// operatorsChecks returns a directory with a check that succeeds and one that warns. Only root may write to the
// directory: a user who may write to any directory above a check could replace the check.
func operatorsChecks(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "quorumd-checks-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, program := range map[string]string{"raid": "/usr/bin/true", "smoke": "/usr/bin/false"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// playLosses makes a voter's disk slow, and kills the machine of a voter.
func playLosses(t *testing.T) []*act {
	t.Helper()
	var disk *testbed.Mount
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, set: map[string]string{
		// Long enough that a slow etcd does not count as unreachable.
		"timing.interval": "1s", "timing.callTimeout": "2500ms", "timing.lockTTL": "15s",
		"disk.directInterval": "1s", "disk.walInterval": "1s",
	}, each: func(i int, o *testbed.HostOptions) {
		if i == 3 {
			disk = faulty(t, o, map[string]string{
				"disk.fsyncClear": "150ms", "disk.fsyncWarm": "180ms", "disk.fsyncSlow": "200ms", "disk.stall": "10s",
			})
		}
	}})
	t.Cleanup(func() { clearRules(t, disk) })
	w.start()
	w.bootstrap()
	w.within(formation, "there are 3 voters", func() bool { return w.has(3, 0) && !w.busy() })
	w.waitRolesAgree()
	w.lead(w.hosts[0])
	o := newObserved(t, w)
	o.waitQuiet()

	n2 := w.hosts[1]
	dead := o.play(fault{
		row: 4, name: "a voter's machine is dead", does: n2.powerOff,
		notified: []string{
			"QuorumdVoterDead n2", "QuorumdNoFaultTolerance", "QuorumdAgentAbsent n2", "etcdMembersDown",
		},
	})
	dead.repair(func() { w.start(n2) })

	slow := o.play(fault{
		row: 5, name: "a voter's disk is slow", does: func() {
			w.writes(5)
			rule(t, disk, "fsync * delay=300ms")
		},
		notified: []string{
			"QuorumdFinding DISK_FSYNC_SLOW", "QuorumdVoterUnhealthy n3", "etcdHighCommitDurations",
			"etcdHighFsyncDurations",
		},
		may: []string{"etcdGRPCRequestsSlow", "etcdHighNumberOfFailedGRPCRequests"},
	})
	slow.repair(func() { clearRules(t, disk) })
	return []*act{dead, slow}
}

// waitingRule contains the severity of an alert, and how long its rule waits as shipped and as shortened: its "for",
// and before it the seconds that its expression requires, if any.
type waitingRule struct{ severity, shipped, hurried string }

// waitingRules returns the rules by alert name.
func waitingRules(t *testing.T) map[string]waitingRule {
	t.Helper()
	text, err := os.ReadFile("../prometheus/quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string, note func(alert, severity, wait string)) {
		var file struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For string
					Labels           struct{ Severity string }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				wait := cmp.Or(r.For, "0s")
				if bound := regexp.MustCompile(`_seconds\) > (\d+)`).FindStringSubmatch(r.Expr); bound != nil {
					wait = bound[1] + "s + " + wait
				}
				note(r.Alert, r.Labels.Severity, wait)
			}
		}
	}
	rules := map[string]waitingRule{}
	read(string(text), func(alert, severity, wait string) { rules[alert] = waitingRule{severity, wait, ""} })
	read(shortenWaits(string(text)), func(alert, _, wait string) {
		r := rules[alert]
		r.hurried = wait
		rules[alert] = r
	})
	mixin, err := os.ReadFile(etcdMixin)
	if err != nil {
		t.Fatal(err)
	}
	// If two rules raise the same alert, the first one counts: it is the milder one.
	read(string(mixin), func(alert, severity, wait string) {
		if _, twice := rules[alert]; !twice {
			rules[alert] = waitingRule{severity, wait, ""}
		}
	})
	read(shortenEtcdWaits(t, string(mixin)), func(alert, _, wait string) {
		if r := rules[alert]; r.hurried == "" {
			r.hurried = wait
			rules[alert] = r
		}
	})
	return rules
}

const playedHead = `# Alert tests: faults and the alerts they raise

This table shows which alerts fire for each fault on a real cluster: agents, etcd, Debian's Prometheus and
Alertmanager, with the rules and the ` + "`alertmanager.yaml`" + ` from the packages.
` + "`make test-alerts UPDATE=1`" + ` injects the faults and writes this page. ` + "`make test-alerts`" + `
fails if an alert fires that is not in this table, or if one of these is missing.

- *for* is how long the rule waits as shipped; *for, in the test* is its shorter wait in the test.
- *fires after* is the time from the fault until Alertmanager notifies, with the shorter waits.
- *resolved after* is the time from the repair until no alert is left.

Prometheus scrapes and evaluates the rules every second. The rules whose names begin with ` + "`etcd`" + ` are from
etcd's mixin. In the test, etcd's rules also look back over seconds instead of minutes. For a slow disk they may report
slow or failed client calls, depending on which members the clients ask.

| fault | alert | severity | for | for, in the test | fires after | resolved after |
|---|---|---|---|---|---|---|
`

// checkTable compares the alerts of all faults with the operators' page, except for the seconds. With -update it writes
// the page.
func checkTable(t *testing.T, acts []*act) {
	t.Helper()
	rules := waitingRules(t)
	slices.SortFunc(acts, func(a, b *act) int { return cmp.Compare(a.row, b.row) })
	var page strings.Builder
	page.WriteString(playedHead)
	for _, a := range acts {
		over := "continues"
		if a.over > 0 {
			over = fmt.Sprintf("%.0f s", a.over.Seconds())
		}
		fault := a.name
		for _, name := range slices.Concat(a.notified, a.inhibited) {
			alert, about, _ := strings.Cut(name, " ")
			if strings.ToUpper(about) == about && about != "" {
				about = " " + about // a code without a host
			} else {
				about = ""
			}
			after := fmt.Sprintf("%.0f s", a.raised[name].Seconds())
			if !slices.Contains(a.notified, name) {
				after = "inhibited"
			}
			r := rules[alert]
			fmt.Fprintf(&page, "| %s | %s%s | %s | %s | %s | %s | %s |\n", fault, alert, about, r.severity, r.shipped,
				r.hurried, after, over)
			fault, over = "", ""
		}
	}
	page.WriteString(playedTail)
	was, err := os.ReadFile(playedTable)
	seconds := regexp.MustCompile(`\| \d+ s `)
	same := func(text string) string { return seconds.ReplaceAllString(text, "| N s ") }
	if *updateTable {
		err = os.WriteFile(playedTable, []byte(page.String()), 0o644)
	} else if err == nil && same(string(was)) != same(page.String()) {
		t.Errorf("%s is out of date: run make test-alerts UPDATE=1\n%s", playedTable, page.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", page.String())
}

const playedTail = `
## Prometheus configuration

- Give quorumd's targets a job whose name does not match the ` + "`job=~\".*etcd.*\"`" + ` of etcd's mixin, such as
  ` + "`quorumd-a`" + `. Otherwise etcd's rules count agents as members.
- While a host is in an operation, ` + "`QuorumdOperationInFlight`" + ` inhibits the alerts of etcd's rules
  about its member. Both must have the same label ` + "`cluster`" + `. quorumd's rules keep only ` + "`job`" + `,
  so derive ` + "`cluster`" + ` from it in Prometheus:

` + "```yaml" + `
alerting:
  alert_relabel_configs:
    - {source_labels: [job], regex: '(?:quorumd|etcd)-(.+)', target_label: cluster}
` + "```" + `

- An overdue maintenance no longer inhibits alerts.
`
