// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

func TestEveryAlertHasARunbookAndATest(t *testing.T) {
	t.Parallel()
	text := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	rules, runbooks, tests := text("quorumd.rules.yaml"), text("runbooks.md"), text("quorumd.rules.test.yaml")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	for _, alert := range alerts {
		if !strings.Contains(runbooks, "\n## "+alert[1]+"\n") {
			t.Errorf("%s has no runbook", alert[1])
		}
		if !strings.Contains(tests, "alertname: "+alert[1]+"\n") {
			t.Errorf("%s has no test that raises it", alert[1])
		}
	}
	if runbooksOf := strings.Count(runbooks, "\n## ") - 1; len(alerts) == 0 || runbooksOf != len(alerts) {
		t.Errorf("%d alerts, %d runbooks", len(alerts), runbooksOf)
	}
}

func TestEveryReasonRaisesAnAlertOrIsListedWithoutOne(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raised, silent := map[string]int{}, map[string]int{}
	for _, found := range regexp.MustCompile(`reason=~?"([A-Z_|]+)"`).FindAllStringSubmatch(string(rules), -1) {
		for _, code := range strings.Split(found[1], "|") {
			raised[code]++
		}
	}
	_, table, _ := strings.Cut(Runbooks(), "## Codes without an alert\n")
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z_, ]+) \| .+ \|$`).FindAllStringSubmatch(table, -1) {
		for _, code := range strings.Split(row[1], ", ") {
			silent[code]++
		}
	}
	for _, r := range policy.Reasons() {
		code := string(r.Code)
		if (raised[code] > 0) == (silent[code] == 1) {
			t.Errorf("%s appears in alerts %d times, and among the codes without an alert %d times", code, raised[code],
				silent[code])
		}
		delete(raised, code)
		delete(silent, code)
	}
	left := findingsWithoutAlert(t, string(rules))
	for _, p := range health.Problems() {
		code := string(p.Code)
		if slices.Contains(left, code) != (silent[code] == 1) {
			t.Errorf("QuorumdFinding excludes %v, but %s appears %d times among the codes without an alert",
				left, code, silent[code])
		}
		delete(silent, code)
	}
	if len(raised)+len(silent) > 0 {
		t.Errorf("undeclared codes: %v %v", raised, silent)
	}
}

func TestEveryAlertLinksItsRunbookAndNamesTheFirstCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("quorumd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Labels      struct{ Severity string }
				Annotations struct {
					Summary, Description, Command string
					RunbookURL                    string `yaml:"runbook_url"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.Groups[0].Rules {
		a := r.Annotations
		if a.Summary == "" || a.Description == "" || !strings.HasSuffix(a.RunbookURL, "#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: %+v", r.Alert, a)
		}
		if !strings.HasPrefix(a.Command, "quorumctl ") && !strings.HasPrefix(a.Command, "journalctl ") &&
			!strings.HasPrefix(a.Command, "systemctl ") {
			t.Errorf("%s has the command %q", r.Alert, a.Command)
		}
		if !strings.Contains(a.Description, "un "+a.Command+" on ") {
			t.Errorf("the description of %s does not say where to run %q", r.Alert, a.Command)
		}
		if !slices.Contains([]string{"critical", "warning", "none"}, r.Labels.Severity) {
			t.Errorf("%s has severity %q", r.Alert, r.Labels.Severity)
		}
	}
}

func TestEveryCheckHasARunbookAndEveryExcludedCodeExists(t *testing.T) {
	t.Parallel()
	text := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	runbooks := text("runbooks.md")
	for _, c := range health.Checks(health.DefaultThresholds()) {
		if !strings.Contains(runbooks, "\n## "+c.Runbook+"\n") {
			t.Errorf("the check %s names the runbook %q, which does not exist", c.Name, c.Runbook)
		}
	}
	for _, code := range findingsWithoutAlert(t, text("quorumd.rules.yaml")) {
		if _, known := health.Code(code).Problem(); !known {
			t.Errorf("the alert excludes %s, which is not declared", code)
		}
	}
}

// findingsWithoutAlert returns the codes that QuorumdFinding excludes.
func findingsWithoutAlert(t *testing.T, rules string) []string {
	t.Helper()
	left := regexp.MustCompile(`quorumd_finding\{code!~"([A-Z_|]+)"\}`).FindStringSubmatch(rules)
	if left == nil {
		t.Fatal("no alert selects findings")
	}
	return strings.Split(left[1], "|")
}
