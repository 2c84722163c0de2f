// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package journalcatalog_test

import (
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares the output of write with a file, and returns the output. With -update, it rewrites the file first.
func golden(t *testing.T, file string, write func(w io.Writer) error) string {
	t.Helper()
	var text strings.Builder
	if err := write(&text); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s has changed (-was +is); go test ./agent/journalcatalog -update rewrites it\n%s", file, diff)
	}
	return text.String()
}

// TestManualPageNamesEveryCheck compares the packaged manual page with the declarations.
func TestManualPageNamesEveryCheck(t *testing.T) {
	t.Parallel()
	golden(t, "../../packaging/man/quorumd-checks.7.md", func(w io.Writer) error {
		return writeChecks(w, health.DefaultThresholds())
	})
}

// TestCatalogIDsAreStable fails if an ID changes. Codes and their IDs must never change.
func TestCatalogIDsAreStable(t *testing.T) {
	t.Parallel()
	text := golden(t, "testdata/quorumd.catalog.golden", journalcatalog.Write)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Subject: ") && utf8.RuneCountInString(line) > 81 {
			t.Errorf("too long: %s", line)
		}
	}
}

func TestEveryCodeHasAUniqueID(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[0-9a-f]{12}5[0-9a-f]{3}[89ab][0-9a-f]{15}$`) // a UUID of version 5
	seen := map[string]string{}
	note := func(code string) {
		id := journalcatalog.ID(code)
		if !form.MatchString(id) {
			t.Errorf("the ID of %s is %s", code, id)
		}
		if other, is := seen[id]; is {
			t.Errorf("%s and %s have the same ID", code, other)
		}
		seen[id] = code
	}
	for _, r := range policy.Reasons() {
		note(string(r.Code))
	}
	for _, p := range health.Problems() {
		note(string(p.Code))
	}
}

func TestCatalogContainsTheCodesThatNeedAnOperator(t *testing.T) {
	t.Parallel()
	held := map[string]journalcatalog.Entry{}
	for _, e := range journalcatalog.Entries() {
		held[e.Code] = e
		if e.Subject == "" || e.Remedy == "" || strings.HasSuffix(e.Subject, ".") {
			t.Errorf("%+v", e)
		}
	}
	for _, r := range policy.Reasons() {
		if _, is := held[string(r.Code)]; is != (r.Remedy != "") {
			t.Errorf("%s has the remedy %q; in the catalog: %t", r.Code, r.Remedy, is)
		}
	}
	for _, p := range health.Problems() {
		if held[string(p.Code)].Remedy != p.Remedy {
			t.Errorf("%s: %+v", p.Code, held[string(p.Code)])
		}
	}
}
