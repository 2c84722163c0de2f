// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorumd/quorumd/health"
)

// Checks lists all checks of the machine.
type Checks struct {
	APIVersion string    `json:"apiVersion"`
	Time       time.Time `json:"time"`
	Checks     []Check   `json:"checks"`
}

// Check is the definition and the current result of one check.
type Check struct {
	Name      string           `json:"name"`
	Component health.Component `json:"component"`
	Source    string           `json:"source"` // what is measured
	Effect    string           `json:"effect"` // what the check's findings prevent, as text
	Vital     bool             `json:"vital"`  // without a reading, the check is UNKNOWN, unless it is SLOW or worse
	Gates     []string         `json:"gates"`  // what the check's findings block: joins, leadership, maintenance
	Limits    []Limit          `json:"limits"`
	Rules     []health.Rule    `json:"rules"`
	Codes     []Code           `json:"codes"`             // the codes of the check's possible findings
	Runbook   string           `json:"runbook,omitempty"` // a section of runbooks.md

	State string      `json:"state,omitempty"` // UNKNOWN to FAILED; empty before the first round
	Code  health.Code `json:"code,omitempty"`  // code of the current finding
	Since time.Time   `json:"since,omitzero"`  // when the check entered this state
	Text  string      `json:"text,omitempty"`  // the measured value and its limit
	// NotAvailable is the reason why the check has no reading.
	NotAvailable string `json:"notAvailable,omitempty"`
	// Figures are the values measured by an external check, as it reported them.
	Figures []health.ExternalCheckFigure `json:"figures,omitempty"`
	// Behind names the check whose finding explains this check's finding. This check's finding is then not listed.
	Behind string `json:"behind,omitempty"`
}

// Limit is a threshold of a check.
type Limit struct {
	health.Limit
	Text string `json:"text"` // the whole limit as text
}

// Code is one possible finding of a check.
type Code struct {
	health.Problem
	Muted *health.Mute `json:"muted,omitempty"`
}
