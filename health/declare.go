// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
)

// Check declares a check.
type Check struct {
	Name      string // identifies the check in snapshots, so it must never change
	Component Component
	Source    string // what the check reads, for display
	// Gates is what the check's findings prevent. A check that gates nothing only advises: it does not change the
	// health state.
	Gates Gate
	// Vital means that etcd's safety cannot be judged without the check: without a reading its state becomes UNKNOWN,
	// unless it is SLOW or worse. Any other check is optional and never UNKNOWN: a missing reading is reported once as
	// not available, and then ignored. Only a finding of SLOW or worse stays.
	Vital bool
	// Behind names the checks whose findings explain a finding of this check. If such a check has a finding, this
	// check's finding is hidden, unless it is worse or gates more.
	Behind []string
	// Problems are the possible findings, and Limits the numbers by which the check decides.
	Problems []Problem
	Limits   []Limit
	// Rules are the transitions, in the order in which they are tried. Only [Checks] sets them.
	Rules []Rule
	// Runbook is the section of contrib/prometheus/runbooks.md about the check's findings.
	Runbook string
}

// findingRunbook is the runbook for findings without one of their own.
const findingRunbook = "QuorumdFinding"

// Gate is a set of steps that a finding can prevent.
type Gate uint8

// The gates. A host publishes one state, the worst of all checks that have a gate, and the steps that no finding
// prevents.
const (
	Joins       Gate = 1 << iota // becoming a member or a voter
	Leadership                   // becoming the leader
	Maintenance                  // maintenance of another voter, during which this voter must be healthy

	Nothing    Gate = 0
	Everything      = Joins | Leadership | Maintenance
)

// Without returns the gates of g that are not in other.
func (g Gate) Without(other Gate) Gate { return g &^ other }

// Names returns the names of the gates in the set.
func (g Gate) Names() []string {
	var names []string
	for i, name := range gateNames() {
		if g.covers(1 << i) {
			names = append(names, name)
		}
	}
	return names
}

// ParseGates returns the gates with these names and ignores unknown names.
func ParseGates(names []string) (g Gate) {
	for i, name := range gateNames() {
		if slices.Contains(names, name) {
			g |= 1 << i
		}
	}
	return g
}

// gateNames returns the names of the gates in the order of their bits.
func gateNames() []string { return []string{"joins", "leadership", "maintenance"} }

// covers reports whether g contains all gates of other.
func (g Gate) covers(other Gate) bool { return g&other == other }

// Limit is a limit of a check: a value beyond Enter is bad, and only a value within Leave is good again.
type Limit struct {
	Of    string  `json:"of"` // what is measured
	Unit  string  `json:"unit"`
	Enter float64 `json:"enter"`           // a finding begins beyond this value
	Leave float64 `json:"leave"`           // a finding ends within this value
	Below bool    `json:"below,omitempty"` // low values are bad, not high ones
}

// beyond reports whether a value is bad, given whether the previous value was bad.
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

// declaration is a check with its initial state and its evidence.
type declaration struct {
	Check

	start     State // the state before the first input
	startCode Code  // the code before the first input
	// gather returns the evidence of the check. The track holds its current state.
	gather func(*track) evidence
}

// declarations returns all checks. The first one provides the assessment's text while nothing is wrong. A check must
// come after all checks that its Behind names.
func declarations(t Thresholds, c *comparison) []declaration {
	all := []declaration{
		declareFsync(t, c), declareSpace(t), declareCPU(t), declareDatabaseSpace(t), declareSlower(c),
		declareSlowAsPeers(t, c),
	}
	add := func(more ...advice) {
		for _, a := range more {
			all = append(all, a.declare())
		}
	}
	add(checkFailing, checkCapacitor, checkWear, checkFirmware, checkFirmwareSoon, checkThrottled,
		checkLanes, checkPCIErrors, checkDriveErrors, checkHeat, checkAlarms,
		checkMemory, checkPressure, checkKills, checkModules)
	all = append(all, declareBroken(), declareWearOut(c))
	add(checkTimeSource, checkClock, checkSteps, checkClockSource, checkThrottling, checkMachineChecks, checkShared,
		checkHung, checkBootLoop, checkUnexpectedReboot, checkCPUPressure, checkIOPressure)
	all = append(all, declareRequests(), declareHashes(), declareCertificates())
	add(checkVotersDiffer, checkVersion, checkSettings, checkHeartbeatSet,
		checkLeaderless, checkLeaders, checkProposals, checkApplies, checkHeartbeats, checkEtcdFsync, checkEtcdCommit)
	all = append(all, declareQuota())
	add(checkAlarm, checkSizeApart,
		checkReadOnly, checkDamage, checkInodes, checkRAID, checkResync, checkDeviceErrors, checkLogged,
		checkFlushes, checkDurability,
		checkPartition, checkOneWay, checkLargeLost,
		checkLink, checkLinkSpeed, checkFlaps, checkLinkErrors, checkLossy, checkRetransmissions, checkDiscovery)
	return append(all, declareExternalChecks(t)...)
}

// Checks returns all checks of a judge that uses the given thresholds.
func Checks(t Thresholds) []Check {
	var all []Check
	for _, d := range declarations(t, newComparison(t)) {
		c := d.Check
		c.Rules = newCheck(d).declared()
		all = append(all, c)
	}
	return all
}

// valid returns an error if the declaration contradicts itself or one of those before it.
func (d declaration) valid(before []declaration) error {
	var wrong []error
	refuse := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(d.Name+" "+format, args...))
	}
	if d.Vital && d.Gates == Nothing {
		refuse("is vital but gates nothing")
	}
	if !d.Vital && d.start != OK {
		refuse("is optional and starts as %s", d.start)
	}
	for _, p := range d.Problems {
		if !d.Vital && p.State == Unknown {
			refuse("is optional, but %s makes the health state UNKNOWN", p.Code)
		}
		if p.Component != d.Component {
			refuse("is about the %s, but %s is about the %s", d.Component, p.Code, p.Component)
		}
	}
	for _, other := range before {
		if other.Name == d.Name {
			refuse("is declared twice")
		}
		for _, p := range other.Problems {
			if d.declares(p.Code) { // otherwise two findings would share one time series of quorumd_finding
				refuse("reuses %s of %s", p.Code, other.Name)
			}
		}
	}
	for _, cause := range d.Behind {
		if !slices.ContainsFunc(before, func(o declaration) bool { return o.Name == cause }) {
			refuse("is behind %s, which must be declared before it", cause)
		}
	}
	return errors.Join(wrong...)
}

// consistent returns an error if a rule leads to a finding that the check does not declare.
func (c *check) consistent() error {
	for _, r := range c.rules {
		if r.to == OK && r.code == "" {
			continue
		}
		if !slices.ContainsFunc(c.Problems, func(p Problem) bool { return p.Code == r.code && p.State == r.to }) {
			return fmt.Errorf("%s has a rule to the undeclared finding %s %q", c.Name, r.to, r.code)
		}
	}
	return nil
}

func (c Check) declares(code Code) bool {
	return slices.ContainsFunc(c.Problems, func(p Problem) bool { return p.Code == code })
}
