// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
)

// Check is what is known of a check before it has seen anything.
type Check struct {
	Name      string // in snapshots; never changed
	Component Component
	Source    string // what it reads, for people
	// Gates is what its findings keep from happening. One that gates nothing advises only: it is listed, and the
	// verdict is as if it were not there.
	Gates Gate
	// Vital says that nobody can tell without it whether etcd is safe here: while it has no reading the verdict is
	// UNKNOWN. Any other check is optional. It is never UNKNOWN: while it cannot be read it is not available, which is
	// said once, and counts for nothing.
	Vital bool
	// Behind names the checks that are the cause when both find something: this one's finding is then not listed,
	// unless it is the worse one or gates more.
	Behind []string
	// Problems are the codes that it may find, and Limits the numbers between which it decides.
	Problems []Problem
	Limits   []Limit
	// Rules are the ways between its states, in the order in which they are tried. [Checks] gives them.
	Rules []Rule
	// Runbook is the section of contrib/prometheus/runbooks.md on its findings.
	Runbook string
}

// findingRunbook tells what to do about a finding that its remedy does not say already.
const findingRunbook = "QuorumdFinding"

// Gate is a set of what findings keep from happening.
type Gate uint8

// The gates. What a host publishes of itself is one state, the worst of all checks that gate anything, and what none of
// their findings gates.
const (
	Joins       Gate = 1 << iota // becoming a member, and a voter
	Leadership                   // being given the leadership
	Maintenance                  // another voter's being taken down while this one has to serve

	Nothing    Gate = 0
	Everything      = Joins | Leadership | Maintenance
)

// Without gives what g has and other has not.
func (g Gate) Without(other Gate) Gate { return g &^ other }

// Names gives the names of the gates in the set.
func (g Gate) Names() []string {
	var names []string
	for i, name := range gateNames() {
		if g.covers(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// ParseGates gives the set of the gates with these names. One that is not known is none.
func ParseGates(names []string) (g Gate) {
	for i, name := range gateNames() {
		if slices.Contains(names, name) {
			g |= 1 << i
		}
	}
	return g
}

// gateNames gives the names of the gates in the order of their bits.
func gateNames() []string { return []string{"joins", "leadership", "maintenance"} }

// covers tells whether g has all of other.
func (g Gate) covers(other Gate) bool { return g&other == other }

// Limit is a number that a check decides by: beyond Enter things are bad, and they have to be within Leave to be well
// again.
type Limit struct {
	Of           string // what is measured
	Unit         string
	Enter, Leave float64
	Below        bool // it is bad to be below Enter, and not above
}

// beyond tells whether a value is bad, when things were well before or were not.
func (l Limit) beyond(value float64, bad bool) bool {
	limit := l.Enter
	if bad {
		limit = l.Leave
	}
	if l.Below {
		return value < limit
	}
	return value > limit
}

// declaration is a check and how it begins.
type declaration struct {
	Check

	start     State // the state before the first input,
	startCode Code  // and its code
	// gather gives what it holds against the machine. The track is where the check stands.
	gather func(*track) evidence
}

// declarations gives all checks. The first one says how the machine is when nothing is wrong. A new check is one line
// here; a check that it stands behind comes before it.
func declarations(t Thresholds) []declaration {
	return slices.Concat([]declaration{
		declareFsync(t), declareSpace(t), declareCPU(t), declareDatabaseSpace(t),
		declareFailing(), declareWear(), declareDriveErrors(), declareHeat(), declareAlarms(),
		declareMemory(), declarePressure(), declareKills(), declareModules(), declareBroken(), declareTimeSource(),
		declareClock(),
		declareSteps(), declareClockSource(), declareThrottling(), declareMachineChecks(), declareHung(),
		declareBootLoop(), declareUnexpectedReboot(),
		declareCPUPressure(), declareIOPressure(),
		declareCertificates(), declareVersion(), declareSettings(), declareHeartbeatSet(),
		declareLeaderless(), declareLeaders(), declareProposals(), declareApplies(), declareHeartbeats(),
		declareEtcdFsync(),
		declareEtcdCommit(), declareQuota(), declareAlarm(), declareSizeApart(),
	}, declareDevices(), declareNetwork(), declareLinks(), []declaration{
		declareLossy(), declareRetransmissions(), declareDiscovery(),
	}, declarePlugins(t))
}

// Checks gives what the judge of these thresholds looks at.
func Checks(t Thresholds) []Check {
	var all []Check
	for _, d := range declarations(t) {
		c := d.Check
		c.Rules = newCheck(d).declared()
		all = append(all, c)
	}
	return all
}

// valid tells what is wrong with a declaration beside those that come before it.
func (d declaration) valid(before []declaration) error {
	var wrong []error
	refuse := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(d.Name+" "+format, args...))
	}
	if d.Vital && d.Gates == Nothing {
		refuse("is vital and gates nothing")
	}
	if !d.Vital && d.start != OK {
		refuse("is optional and starts as %s", d.start)
	}
	for _, p := range d.Problems {
		if !d.Vital && p.State == Unknown {
			refuse("is optional, and %s makes the verdict UNKNOWN", p.Code)
		}
		if p.Component != d.Component {
			refuse("is about the %s, and %s about the %s", d.Component, p.Code, p.Component)
		}
	}
	for _, other := range before {
		if other.Name == d.Name {
			refuse("is declared twice")
		}
		for _, p := range other.Problems {
			if d.declares(p.Code) { // it would be one series of quorumd_finding for two findings
				refuse("has %s, which is a code of %s", p.Code, other.Name)
			}
		}
	}
	for _, cause := range d.Behind {
		if !slices.ContainsFunc(before, func(o declaration) bool { return o.Name == cause }) {
			refuse("stands behind %s, which does not come before it", cause)
		}
	}
	return errors.Join(wrong...)
}

// consistent tells which rule leads to a state that the declaration does not know.
func (c *check) consistent() error {
	for _, r := range c.rules {
		if r.to == OK && r.code == "" {
			continue
		}
		if !slices.ContainsFunc(c.Problems, func(p Problem) bool { return p.Code == r.code && p.State == r.to }) {
			return fmt.Errorf("%s has a rule to %s %q, which it does not declare", c.Name, r.to, r.code)
		}
	}
	return nil
}

func (c Check) declares(code Code) bool {
	return slices.ContainsFunc(c.Problems, func(p Problem) bool { return p.Code == code })
}
