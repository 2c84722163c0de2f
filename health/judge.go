// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// Assessment is the health of the machine at one moment.
type Assessment struct {
	// State is the worst state of all checks that gate anything, and Since is when it was entered.
	State State
	Since time.Duration
	// Gates are all steps that the findings prevent.
	Gates Gate
	// Code, Text and Remedy are taken from the worst gating finding. Without one, Code and Remedy are empty and Text is
	// the latest measurement.
	Code   Code
	Text   string
	Remedy string
	// Qualified means that the disk has passed a qualifying run and has been OK or WARM since.
	Qualified bool
	// Recovers means that the state is WARM or SLOW because of past writes only: for some time, the newest writes alone
	// would not have caused a finding. See fsyncRecovers and warmRecovers.
	Recovers bool
	// HealsAfter is, for a disk that is SLOW or worse, the longest time in the last days for which it was SLOW before
	// it became fast again by itself; 0 if that has not happened.
	HealsAfter time.Duration
	// Defective means that the disk is not only SLOW: a drive reports errors, or the disk was SLOW again and again on
	// one of the last days.
	Defective bool
	// SlowNow means that the newest writes alone would cause a finding about slow writes. If it is false, such a
	// finding continues only until its recovery time has passed.
	SlowNow bool
	// Habitual means that the disk is WARM or SLOW because of a slow spell that is usual at this hour, according to
	// [History]. It is false if a tenth of the writes is very slow.
	Habitual bool
	// Answers means that etcd has answered the newest request through the local member.
	Answers bool
	// Urgent means that at least half of the latest writes took longer than [Thresholds.FsyncWarm], and longer than
	// twice the usual time. The latest writes are those of the last 20 s, or of five intervals of the probe if these
	// are longer.
	Urgent bool
	// AsUsual means that the newest writes take about as long as in the last week, apart from the slowest tenth.
	AsUsual bool
	// Writes is how long writes to the disk take now.
	Writes Writes
	// AsksPeers means that the other voters should publish how long their writes take.
	AsksPeers bool
	// Findings are sorted: first those that gate something, each group with the worst first.
	Findings []Finding
	// Checks contains the state of each check, in the order of [Checks].
	Checks []Standing
	// NotAvailable lists the optional checks and the individual devices that have no reading. They are ignored. A check
	// is not listed if a check in its Behind has no reading for the same reason.
	NotAvailable []Absence
	Figures      Figures
}

// Absence is an optional check, or a device that it covers, without a reading, and the reason.
type Absence struct {
	Check     string    `json:"check"`
	Component Component `json:"component"`
	Why       string    `json:"why"`
}

// Finding is one detected condition.
type Finding struct {
	Code      Code
	Component Component
	State     State  // the health state if this were the only finding
	Gates     Gate   // the steps that it prevents
	Text      string // the measurement with its limit
	Remedy    string
	Since     time.Duration // when this state was entered
	// Count is the number of items, such as drives, with the condition; 0 if the check does not count items.
	Count int
	// Grade is the binary logarithm of the severity: one more means twice as bad. It is 0 if unknown.
	Grade float64
	// Cause is the likely cause of slow writes, and Why the measurement that indicates it. Both are empty if no cause
	// is known.
	Cause Cause
	Why   string
}

// Change is a transition of a check to another state or code, or the report that it has no reading.
type Change struct {
	Component Component
	Check     string // its name
	From, To  State
	Code      Code   // code of the new finding; empty if To is OK
	Text      string // the measurement that caused the transition
	// NotAvailable is why the check has no reading, in which case its state is unchanged; otherwise empty.
	NotAvailable string
	At           time.Duration
}

// Judge derives the health of the machine from a series of inputs. It is not safe for concurrent use.
type Judge struct {
	checks   []*check
	compared *comparison

	now           time.Duration
	slowAt        time.Duration // when the newest writes alone were last slow: see SlowNow
	newest        time.Duration // when the newest sample was completed
	devices       DevicesReading
	circumstances circumstances
	causeless     bool // see NewOf
	begun         bool
	reset         bool
	state         State
	since         time.Duration
}

// New returns a judge without any data. It returns an error that names all invalid thresholds.
func New(t Thresholds) (*Judge, error) {
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("invalid thresholds: %w", err)
	}
	return judgeBy(declarations(t, newComparison(t)))
}

// judgeBy returns a judge with these checks.
func judgeBy(all []declaration) (*Judge, error) {
	j := &Judge{}
	for i, d := range all {
		if err := d.valid(all[:i]); err != nil {
			return nil, fmt.Errorf("invalid checks: %w", err)
		}
		c := newCheck(d)
		if err := c.consistent(); err != nil {
			return nil, fmt.Errorf("invalid checks: %w", err)
		}
		if e, is := c.evidence.(*fsync); is {
			j.compared = e.compared
		}
		j.checks = append(j.checks, c)
	}
	return j, nil
}

// Observe processes new input. It returns the current health, and the changes since the previous call, in order.
func (j *Judge) Observe(in Input) (Assessment, []Change) {
	in = j.plausible(in)
	if !j.begun {
		j.begin(in.Now)
	}
	j.now, j.reset, j.devices = in.Now, false, in.Devices
	if !j.causeless {
		j.circumstances.read(in)
	}
	var changes []Change
	for _, c := range j.checks {
		c.read(in)
		changes = append(changes, c.settle(in.Now)...)
	}
	return j.assess(), changes
}

// Reset makes the next Observe end FAILED, after an operator has repaired the machine. It returns an error if no check
// is FAILED.
func (j *Judge) Reset() error {
	if !slices.ContainsFunc(j.checks, func(c *check) bool { return c.State == Failed }) {
		return errors.New("cannot reset: nothing is FAILED; see 'quorumctl health'")
	}
	j.reset = true
	return nil
}

func (j *Judge) begin(now time.Duration) {
	j.begun, j.since, j.newest = true, now, now
	for _, c := range j.checks {
		c.Since = now
		c.begin(now)
	}
}

// plausible corrects impossible times and drops impossible readings, so that no rule has to handle them.
func (j *Judge) plausible(in Input) Input {
	in.Now = max(in.Now, j.now)
	in.reset = j.reset
	d := &in.Disk
	d.InFlight, d.UsageAge, d.LastCompletion = max(d.InFlight, 0), max(d.UsageAge, 0), min(d.LastCompletion, in.Now)
	if d.Err != nil {
		d.Err = &DiskError{d.Err.Op, d.Err.Errno, min(d.Err.At, in.Now)}
	}
	d.Samples = slices.Clone(d.Samples)
	d.Samples = slices.DeleteFunc(d.Samples, func(s disk.Sample) bool { return s.Lane > disk.LaneWAL })
	for i := range d.Samples {
		s := &d.Samples[i]
		s.End, s.Latency = min(max(s.End, j.newest), in.Now), max(s.Latency, 0)
		j.newest = s.End
	}
	return in
}

func (j *Judge) assess() Assessment {
	v := Assessment{
		State: OK, Findings: j.findings(), Checks: j.standings(), Figures: Figures{Devices: j.devices},
	}
	missing := map[string][]string{} // by check
	for _, c := range j.checks {
		c.report(&v)
		why := c.absent()
		missing[c.Name] = append(missing[c.Name], why)
		said := slices.ContainsFunc(c.Behind, func(cause string) bool { return slices.Contains(missing[cause], why) })
		if why != "" && !said {
			v.NotAvailable = append(v.NotAvailable, Absence{c.Name, c.Component, why})
		}
		if partly, is := c.evidence.(interface{ unknown() []string }); is {
			for _, what := range partly.unknown() {
				v.NotAvailable = append(v.NotAvailable, Absence{c.Name, c.Component, what})
				missing[c.Name] = append(missing[c.Name], what)
			}
		}
	}
	v.Text = v.Checks[0].Text
	if !j.causeless {
		j.circumstances.attributed(&v)
	}
	if len(v.Findings) > 0 && v.Findings[0].Gates != Nothing {
		worst := v.Findings[0]
		v.State, v.Code, v.Text, v.Remedy = worst.State, worst.Code, worst.Text, worst.Remedy
		for _, f := range v.Findings {
			v.Gates |= f.Gates
			v.Recovers = v.Recovers && (f.Gates == Nothing || f.Code == DiskFsyncSlow || Slow.WorseThan(f.State))
		}
	}
	if v.SlowNow {
		j.slowAt = j.now
	}
	if v.State == Warm {
		v.Recovers = v.OnlySlowWrites(Leadership) && j.now-j.slowAt >= warmRecovers
	}
	if v.State != j.state {
		j.state, j.since = v.State, j.now
	}
	v.Since = j.since
	return v
}

// findings returns all findings that no other finding explains: first those that gate something, each group with the
// worst first.
func (j *Judge) findings() []Finding {
	var listed []Finding
	for _, c := range j.checks {
		if f, wrong := c.finding(); wrong && j.cause(c, f) == "" {
			listed = append(listed, f)
		}
	}
	slices.SortStableFunc(listed, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(min(b.Gates, 1), min(a.Gates, 1)),
			cmp.Compare(b.State.weight(), a.State.weight()),
		)
	})
	return listed
}

// Rule declares a transition between states, or between codes within a state.
type Rule struct {
	Component Component `json:"-"`
	From      []State   `json:"from"`
	To        State     `json:"to"`
	Code      Code      `json:"code,omitempty"` // code of the finding in state To; empty if To is OK
	When      string    `json:"when"`           // the condition, with its limits and times
	// Return marks a recovery. Each recovery doubles the time that the next one within a day takes, up to 4 h.
	Return bool `json:"return,omitempty"`
}

// Rules returns the transitions of all checks, in the order in which they are tried.
func (j *Judge) Rules() []Rule {
	var all []Rule
	for _, c := range j.checks {
		all = append(all, c.declared()...)
	}
	return all
}

// declared returns the rules of one check.
func (c *check) declared() []Rule {
	var all []Rule
	for _, r := range c.rules {
		all = append(all, Rule{c.Component, r.from, r.to, r.code, r.when, r.isReturn})
	}
	return all
}
