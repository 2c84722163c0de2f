// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"os"
	"regexp"
	"strings"
	"testing"
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
