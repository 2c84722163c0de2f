// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const small = `package p

var table = []string{"a", "b"}

func f(a, b int, ok bool) bool {
	if a < b && !ok {
		return true
	}
	a = b + 1
	return a >= 3
}
`

func TestEveryKindOfChangeIsFound(t *testing.T) {
	t.Parallel()
	found, err := mutants("p.go", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.function+": "+m.was+" → "+m.now)
	}
	for _, want := range []string{
		`: "a", → `, `: "b" → `, "f: < → <=", "f: && → ||", "f: ! → ", "f: true → false", "f: a = b + 1 → ", "f: + → -",
		"f: 1 → 2",
		"f: >= → >", "f: 3 → 4", "f: a < b && !ok → (a < b && !ok) && false",
		"f: a < b && !ok → (a < b && !ok) || true",
	} {
		if !strings.Contains(strings.Join(got, "\n")+"\n", want+"\n") {
			t.Errorf("no mutant %q; found:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestAMutatedSourceIsValidGo(t *testing.T) {
	t.Parallel()
	found, err := mutants("p.go", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		changed := m.apply([]byte(small))
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", changed, 0); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if string(changed) == small {
			t.Errorf("%s changes nothing", m)
		}
	}
}

func TestASurvivingMutantIsReportedAndAKilledOneIsNot(t *testing.T) {
	t.Parallel()
	dir := module(t, "if !f(0, 1, false) { t.Fatal() }")
	var out bytes.Buffer
	err := run(t.Context(), &out, options{dir: dir, tests: "./" + dir, workers: 2, limit: 60e9, only: "a < b"})
	if err == nil || !strings.Contains(out.String(), "survived: ") {
		t.Errorf("no survivor is reported, although no test covers the second half of the condition: %v\n%s", err, &out)
	}
	if strings.Contains(out.String(), "survived: line 6: p.go f: a < b && !ok → (a < b && !ok) && false") {
		t.Errorf("a condition that is never true is reported as surviving:\n%s", &out)
	}
}

func TestAMutantWhoseTestsDoNotEndIsReportedAsTimedOut(t *testing.T) {
	t.Parallel()
	dir := module(t, "for !f(0, 1, false) {\n\t}")
	var out bytes.Buffer
	_ = run(t.Context(), &out, options{
		dir: dir, tests: "./" + dir, workers: 2, limit: time.Second, only: "a < b && !ok →",
	})
	if !strings.Contains(out.String(), "timed out: ") {
		t.Errorf("the report lacks the mutant whose test does not end:\n%s", &out)
	}
}

func TestAnEquivalentMutantNeedsAReason(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "known.txt")
	if err := os.WriteFile(path, []byte("p.go f: < → <= in: if a < b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKnown(path); err == nil || !strings.Contains(err.Error(), "has no reason") {
		t.Errorf("got %v", err)
	}
}

func TestEveryListedEquivalentMutantStillExists(t *testing.T) {
	t.Parallel()
	known, err := readKnown("equivalent.txt")
	if err != nil || len(known) == 0 {
		t.Fatalf("%d listed: %v", len(known), err)
	}
	all, _, err := collect(options{dir: "../../agent/policy", every: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		delete(known, m.String())
	}
	for name := range known {
		t.Errorf("the listed mutant no longer exists, remove it from the list: %s", name)
	}
}

// module creates a package with one test in the directory testdata of this package, and returns its directory. The new
// package belongs to the module, but no other command treats it as a package of quorumd.
func module(t *testing.T, body string) string {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("testdata", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	test := "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\t" + body + "\n}\n"
	for name, text := range map[string]string{"p.go": small, "p_test.go": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
