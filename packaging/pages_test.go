// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheManualPageOfQuorumctlHasEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	help, page := text(t, "../cmd/quorumctl/testdata/help.golden"), text(t, "man/quorumctl.1.md")
	said := func(word string) bool {
		return regexp.MustCompile(`\*\*([^*]* )?` + regexp.QuoteMeta(word) + `[ *]`).MatchString(page)
	}
	words := regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[a-z][a-z-]*)`).FindAllStringSubmatch(help, -1)
	words = append(words, regexp.MustCompile(`(?m)^\$ quorumctl (?:\w+ )?(\w+) --help`).FindAllStringSubmatch(help,
		-1)...)
	if len(words) < 20 {
		t.Fatalf("the help has only %d words", len(words))
	}
	for _, w := range words {
		if !said(w[1]) {
			t.Errorf("quorumctl(1) lacks %s", w[1])
		}
	}
}

func TestTheManualPageOfQuorumdHasEveryFlagAndFile(t *testing.T) {
	t.Parallel()
	page := text(t, "man/quorumd.8.md")
	for _, flag := range regexp.MustCompile(`StringVar\(&\w+, "(\w[\w-]*)"`).FindAllStringSubmatch(text(t,
		"../cmd/quorumd/main.go"), -1) {
		if !strings.Contains(page, "**--"+flag[1]+"**") {
			t.Errorf("quorumd(8) lacks --%s", flag[1])
		}
	}
	units, err := filepath.Glob("systemd/quorumd*")
	if err != nil || len(units) == 0 {
		t.Fatal(units, err)
	}
	recipe := text(t, "nfpm.yaml")
	for _, unit := range units {
		name := filepath.Base(unit)
		if !strings.Contains(page, strings.ReplaceAll(name, "quorumd@.", "quorumd@NAME.")) {
			t.Errorf("quorumd(8) lacks %s", name)
		}
		if !strings.Contains(recipe, "dst: /usr/lib/systemd/system/"+name) {
			t.Errorf("no package has %s", name)
		}
	}
}

// The proxy starts before etcd and quorumd and outlives both, so its units depend on no other unit.
func TestProxyHasNoDependencies(t *testing.T) {
	t.Parallel()
	tie := regexp.MustCompile(`(?m)^(After|Requires|Requisite|Wants|BindsTo|PartOf|Conflicts|Upholds)=.*`)
	for _, unit := range []string{"quorumd-proxy.service", "quorumd-proxy@.service"} {
		if found := tie.FindAllString(text(t, "systemd/"+unit), -1); found != nil {
			t.Errorf("%s has %q", unit, found)
		}
	}
}
