// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// Checks lists all checks of the machine.
type Checks struct {
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
	Checks     []Check   `json:"checks"`
}

// Check is the definition and the current result of one check.
type Check struct {
	Name      string   `json:"name"`
	Component string   `json:"component"`
	Source    string   `json:"source"` // what is measured
	Effect    string   `json:"effect"` // what its findings mean, as text
	Vital     bool     `json:"vital"`  // without its reading the health state is UNKNOWN
	Gates     []string `json:"gates"`  // what its findings block: joins, leadership, maintenance
	Limits    []Limit  `json:"limits"`
	Rules     []Rule   `json:"rules"`
	Codes     []Code   `json:"codes"`             // the codes of its possible findings
	Runbook   string   `json:"runbook,omitempty"` // a section of runbooks.md

	State string    `json:"state,omitempty"` // UNKNOWN to FAILED; empty before the first measurement
	Code  string    `json:"code,omitempty"`  // code of the current finding
	Since time.Time `json:"since,omitzero"`  // when the state was entered
	Text  string    `json:"text,omitempty"`  // the measured value and its limit
	// NotAvailable is the reason why the check cannot be made.
	NotAvailable string `json:"notAvailable,omitempty"`
	// Figures are the values measured by an external check, as it reported them.
	Figures []Figure `json:"figures,omitempty"`
	// Behind names the check that already reports this finding.
	Behind string `json:"behind,omitempty"`
}

// Figure is one value measured by an external check.
type Figure struct {
	Label string  `json:"label"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// Limit is a threshold of a check.
type Limit struct {
	Of    string  `json:"of"`
	Unit  string  `json:"unit"`
	Enter float64 `json:"enter"`           // the finding begins beyond it
	Leave float64 `json:"leave"`           // the finding ends within it
	Below bool    `json:"below,omitempty"` // low values are bad
	Text  string  `json:"text"`            // the whole limit as text
}

// Rule is one transition of a check from a state to another.
type Rule struct {
	From []string `json:"from"`
	To   string   `json:"to"`
	Code string   `json:"code,omitempty"` // code of the finding in To
	When string   `json:"when"`           // the condition, with its limits and times
	// Return marks a recovery. Each recovery within a day doubles the time that the next one takes.
	Return bool `json:"return,omitempty"`
}

// Code is one possible finding of a check.
type Code struct {
	Code    string `json:"code"`
	State   string `json:"state"` // the health state that this finding alone causes
	Title   string `json:"title"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy,omitempty"`
	Muted   *Mute  `json:"muted,omitempty"`
}
