// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"

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
			t.Errorf("%s is not tested to be raised", alert[1])
		}
	}
	if runbooksOf := strings.Count(runbooks, "\n## "); len(alerts) == 0 || runbooksOf != len(alerts) {
		t.Errorf("%d alerts, %d runbooks", len(alerts), runbooksOf)
	}
}

func TestEveryCheckHasARunbookAndTheAlertsNameCodesThatExist(t *testing.T) {
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
			t.Errorf("the check %s names the runbook %q, which is not there", c.Name, c.Runbook)
		}
	}
	left := regexp.MustCompile(`quorumd_finding\{code!~"([A-Z_|]+)"\}`).FindStringSubmatch(text("quorumd.rules.yaml"))
	if left == nil {
		t.Fatal("no alert is raised for findings")
	}
	for _, code := range strings.Split(left[1], "|") {
		if _, known := health.Code(code).Problem(); !known {
			t.Errorf("the alert leaves out %s, which nobody declares", code)
		}
	}
}
