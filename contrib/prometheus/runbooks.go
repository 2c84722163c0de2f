// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus holds the alert rules, a test for each alert, and the runbooks, which quorumd serves on its
// metrics port.
package prometheus

import (
	_ "embed" // embeds the runbooks and the rules
	"regexp"
	"strings"
)

//go:embed runbooks.md
var runbooks string

//go:embed quorumd.rules.yaml
var rules string

// Runbooks returns the runbooks as Markdown.
func Runbooks() string { return runbooks }

// RunbooksByCode maps each code that an alert names to the alert, which is also the name of the runbook.
func RunbooksByCode() map[string]string {
	named := regexp.MustCompile(`reason=~?"([A-Z_|]+)"`)
	byCode := map[string]string{}
	for _, rule := range strings.Split(rules, "- alert: ")[1:] {
		alert, expr, _ := strings.Cut(rule, "\n")
		for _, found := range named.FindAllStringSubmatch(expr, -1) {
			for _, code := range strings.Split(found[1], "|") {
				if byCode[code] == "" {
					byCode[code] = alert
				}
			}
		}
	}
	for alert, code := range byMetric() {
		if code != "" {
			byCode[code] = alert
		}
	}
	return byCode
}

// byMetric maps each alert that has a metric of its own to the code that it is about, or to "" if no agent reports
// a code for it.
func byMetric() map[string]string {
	return map[string]string{
		"QuorumdOperationOverdue": "MAINTENANCE_OVERDUE", "QuorumdVoterDead": "VOTER_DEAD",
		"QuorumdVoterUnhealthy": "VOTER_UNHEALTHY",
		"QuorumdBackupOld":      "BACKUP_OLD", "QuorumdBackupFailed": "BACKUP_FAILED",
		"QuorumdRestoreTestOverdue": "RESTORE_TEST_OVERDUE", "QuorumdRestoreTestFailed": "RESTORE_TEST_FAILED",
		"QuorumdRolloutStopped": "", "QuorumdNoFaultTolerance": "", "QuorumdAgentAbsent": "", "QuorumdLoopStuck": "",
		"QuorumdOperationInFlight": "", "QuorumdDataDiffers": "",
	}
}
