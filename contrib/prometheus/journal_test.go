// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/health"
)

var update = flag.Bool("update", false, "write the table of alerts, codes and messages")

// journalTable is the generated page for operators.
const journalTable = "../docs/journal-alerts.md"

const journalHead = `# Alerts in the systemd journal

This table lists each alert with its codes and with the ID of their messages in the systemd journal. The ID is
derived from the code and never changes:

    journalctl MESSAGE_ID=THE-ID            # the messages on that host
    journalctl --catalog MESSAGE_ID=THE-ID  # also their meaning and remedy

` + "`quorumctl explain CODE`" + ` shows the same without the journal. An alert without a code is about a silent agent or
about the whole cluster; see its runbook. ` + "`go test ./contrib/prometheus -update`" + ` generates this page from the
rules and the codes.

| alert | severity | code | MESSAGE_ID |
|---|---|---|---|
`

// TestAlertsCodesAndJournalCatalogAgree compares the alerts, the codes and the journal catalog with each other, and the
// generated page with them.
func TestAlertsCodesAndJournalCatalogAgree(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      struct{ Severity string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	inCatalog := map[string]bool{}
	for _, e := range journalcatalog.Entries() {
		inCatalog[e.Code] = true
	}
	var page strings.Builder
	page.WriteString(journalHead)
	raised := map[string]bool{}
	for _, r := range rules.Groups[0].Rules {
		codes := codesOf(t, r.Alert, r.Expr)
		if len(codes) == 0 {
			fmt.Fprintf(&page, "| [%s](../prometheus/runbooks.md#%s) | %s | | |\n", r.Alert, strings.ToLower(r.Alert),
				r.Labels.Severity)
		}
		for i, code := range codes {
			alert, severity := "", ""
			if i == 0 {
				alert = fmt.Sprintf("[%s](../prometheus/runbooks.md#%s)", r.Alert, strings.ToLower(r.Alert))
				severity = r.Labels.Severity
			}
			if raised[code] = true; !inCatalog[code] {
				t.Errorf("%s is raised for %s, which has no remedy in the journal catalog", r.Alert,
					code)
			}
			fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", alert, severity, code, journalcatalog.ID(code))
		}
	}
	for code := range inCatalog {
		if _, table, _ := strings.Cut(Runbooks(), "## Codes without an alert\n"); !raised[code] &&
			!regexp.MustCompile(`(?m)^\| ([A-Z_, ]+, )?`+code+`(, [A-Z_, ]+)? \|`).MatchString(table) {
			t.Errorf("%s has a remedy in the journal catalog, but neither an alert nor a row among the codes "+
				"without one", code)
		}
	}
	if *update {
		err = os.WriteFile(journalTable, []byte(page.String()), 0o644)
	}
	was, readErr := os.ReadFile(journalTable)
	if err != nil || readErr != nil || string(was) != page.String() {
		t.Errorf("%s is out of date (%v, %v); go test ./contrib/prometheus -update writes it",
			journalTable, err, readErr)
	}
}

// codesOf returns the codes that raise an alert.
func codesOf(t *testing.T, alert, expr string) []string {
	t.Helper()
	if code, is := byMetric()[alert]; is {
		if code == "" {
			return nil
		}
		return []string{code}
	}
	var codes []string
	if left := regexp.MustCompile(`quorumd_finding\{code!~"([A-Z_|]+)"\}`).FindStringSubmatch(expr); left != nil {
		for _, p := range health.Problems() {
			if !slices.Contains(strings.Split(left[1], "|"), string(p.Code)) {
				codes = append(codes, string(p.Code))
			}
		}
	}
	for _, found := range regexp.MustCompile(`reason=~?"([A-Z_|]+)"`).FindAllStringSubmatch(expr, -1) {
		codes = append(codes, strings.Split(found[1], "|")...)
	}
	if len(codes) == 0 {
		t.Errorf("the expression of %s names no code", alert)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
