// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "time"

// Checks is all that is looked at on the machine.
type Checks struct {
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
	Checks     []Check   `json:"checks"`
}

// Check is one thing that is looked at: what is known of it beforehand, and where it stands.
type Check struct {
	Name      string   `json:"name"`
	Component string   `json:"component"`
	Source    string   `json:"source"` // what is measured
	Effect    string   `json:"effect"` // of what it finds, for people
	Vital     bool     `json:"vital"`  // without a reading of it the verdict is UNKNOWN
	Gates     []string `json:"gates"`  // what its findings keep from happening: joins, leadership, maintenance
	Limits    []Limit  `json:"limits"`
	Rules     []Rule   `json:"rules"`
	Codes     []Code   `json:"codes"`             // what it may find
	Runbook   string   `json:"runbook,omitempty"` // a section of runbooks.md

	State string    `json:"state,omitempty"` // UNKNOWN to FAILED; empty before the first look
	Code  string    `json:"code,omitempty"`  // of what it has found
	Since time.Time `json:"since,omitzero"`  // when the state was entered
	Text  string    `json:"text,omitempty"`  // what was measured, against its limit
	// NotAvailable says why there is nothing to judge by.
	NotAvailable string `json:"notAvailable,omitempty"`
	// Figures are what a check of the operator's own has measured, by its own word.
	Figures []Figure `json:"figures,omitempty"`
	// Behind names the check that says already what this one has found.
	Behind string `json:"behind,omitempty"`
}

// Figure is one number that a check of the operator's own has measured.
type Figure struct {
	Label string  `json:"label"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// Limit is a number that a check decides by.
type Limit struct {
	Of    string  `json:"of"`
	Unit  string  `json:"unit"`
	Enter float64 `json:"enter"`           // things are bad beyond it
	Leave float64 `json:"leave"`           // and well again within it
	Below bool    `json:"below,omitempty"` // it is bad to be below
	Text  string  `json:"text"`            // the whole of it, for people
}

// Rule is one way of a check from a state to another.
type Rule struct {
	From []string `json:"from"`
	To   string   `json:"to"`
	Code string   `json:"code,omitempty"` // in To
	When string   `json:"when"`           // the condition, with its numbers and times
	// Return says that it is a recovery: each one of a day doubles the time that the next one takes.
	Return bool `json:"return,omitempty"`
}

// Code is one thing that a check may find.
type Code struct {
	Code    string `json:"code"`
	State   string `json:"state"` // the verdict that it alone calls for
	Title   string `json:"title"`
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy,omitempty"`
	Muted   *Mute  `json:"muted,omitempty"`
}

// complete gives lists that are absent as empty ones.
func (c Checks) complete() Checks {
	c.APIVersion, c.Checks = APIVersion, orEmpty(c.Checks)
	for i := range c.Checks {
		k := &c.Checks[i]
		k.Gates, k.Limits, k.Rules, k.Codes = orEmpty(k.Gates), orEmpty(k.Limits), orEmpty(k.Rules), orEmpty(k.Codes)
	}
	return c
}
