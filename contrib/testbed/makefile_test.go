// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMakeNamesTheGoVersionItNeeds uses fake Go programs that answer only "version".
func TestMakeNamesTheGoVersionItNeeds(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Fatal("cannot test the Makefile: install make")
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\ngo ")
	need, _, _ := strings.Cut(after, "\n")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if named := "Go " + strings.TrimSuffix(need, ".0") + " or newer"; !strings.Contains(string(readme), named) {
		t.Errorf("README does not say %q", named)
	}
	says := func(found string) string { return "need Go ≥ " + need + ", found " + found + ": https://go.dev/dl" }
	for what, c := range map[string]struct{ script, says string }{
		"Debian's": {`echo "go version go1.19.8 linux/amd64"`, says("1.19.8")},
		"one without toolchain downloads": {
			`[ "$GOTOOLCHAIN" = local ] || { echo "go: toolchain not available" >&2; exit 1; }; ` +
				`echo "go version go1.24.2 linux/arm64"`, says("1.24.2"),
		},
		"a broken one":          {"exit 1", says("a Go whose version cannot be determined")},
		"none":                  {"", "found no "},
		"the required one":      {`echo "go version go` + need + ` linux/amd64"`, ""},
		"a newer one":           {`echo "go version go1.126.3 linux/amd64"`, ""},
		"a development version": {`echo "go version devel go1.127-7a2b8f1 Sat Nov 21 linux/amd64"`, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "go")
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := runMake(t, root, "-n", "build", "GO="+program)
			if refused := err != nil; refused != (c.says != "") || !strings.Contains(out, c.says) ||
				refused && strings.Count(out, "\n") != 1 {
				t.Errorf("%v: %s; want one line with %q", err, out, c.says)
			}
		})
	}
}

// runMake returns the output of make. It removes the variables that an outer make sets, and GOTEST, with which CI
// replaces "go test".
func runMake(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = root
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAKE") && !strings.HasPrefix(v, "MFLAGS=") && !strings.HasPrefix(v, "GOTEST=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// fakeGo writes a Go that builds nothing, and whose tests fail for packages that match red.
func fakeGo(t *testing.T, red string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "go")
	script := `#!/bin/sh
case "$1" in
version) echo "go version go1.126.3 linux/amd64" ;;
list) printf 'example.org/a\nexample.org/contrib/e2e\n' ;;
test) for last; do :; done; echo "tested $last"; case "$last" in ` + red + `) exit 1 ;; esac ;;
esac
`
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestMakeTestRunsEverythingAndFailsAtTheEnd uses a Go whose tests fail for none, some or all packages. No line of the
// output may be a long command.
func TestMakeTestRunsEverythingAndFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	for red, says := range map[string]string{
		"none": "", "*/a": "\nred: unit tests\n", "*/e2e": "\nred: end-to-end tests\n",
		"*": "\nred: unit tests and end-to-end tests\n",
	} {
		out, err := runMake(t, root, "test", "GO="+fakeGo(t, red))
		if (err != nil) != (says != "") || !strings.Contains(out, says) ||
			!strings.Contains(out, "tested example.org/a\n") ||
			!strings.Contains(out, "tested ./contrib/e2e\n") {
			t.Errorf("%s: %v: %s", red, err, out)
		}
		for line := range strings.Lines(out) {
			if len(line) > 400+len(root) {
				t.Errorf("make test prints %d bytes in a line: %.80s", len(line), line)
			}
		}
	}
}

// pathWithout creates a directory with a link to every program of PATH but one.
func pathWithout(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(from)
		for _, entry := range entries {
			if name := entry.Name(); name != program {
				_ = os.Symlink(filepath.Join(from, name), filepath.Join(dir, name)) // the first of each name counts
			}
		}
	}
	return dir
}

// TestMakeNeedsGitOnlyForPackages uses a PATH without git.
func TestMakeNeedsGitOnlyForPackages(t *testing.T) { //nolint:paralleltest // it sets PATH
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", pathWithout(t, "git"))
	goes := fakeGo(t, "none")
	out, err := runMake(t, root, "packages", "GO="+goes)
	if err == nil || !strings.Contains(out, "cannot determine the package version without git") ||
		strings.Count(out, "\n") != 2 { // make itself prints the second line
		t.Errorf("make packages: %v: %s", err, out)
	}
	for _, args := range [][]string{{"test"}, {"build"}, {"packages", "PACKAGE_VERSION=1.2.3"}} {
		if out, err := runMake(t, root, append(args, "GO="+goes)...); err != nil ||
			strings.Contains(out, "not found") {
			t.Errorf("make %q: %v: %s", args, err, out)
		}
	}
}

// TestTheTestsThatMakeTestSkipsExist checks that every test that a list in the Makefile names exists.
func TestTheTestsThatMakeTestSkipsExist(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if line := regexp.MustCompile(`(?m)^[A-Z_0-9]+ *:?=.*[ \t]#.*$`).Find(makefile); line != nil {
		t.Errorf("the space before the comment is part of the value: %s", line)
	}
	for list, dir := range map[string]string{
		"LONG_FLEETS": "agent", "LONG_SIM": "agent/sim", "NIGHTLY_LAB": "contrib/lab", "NIGHTLY_PACKAGES": "packaging",
		"NIGHTLY_FAULTS": "contrib/e2e",
	} {
		_, after, found := strings.Cut(string(makefile), "\n"+list)
		names := regexp.MustCompile(`^ *:= ((?:.*\$\\\n)*.*)\n`).FindStringSubmatch(after)
		if !found || names == nil {
			t.Fatalf("the Makefile has no %s", list)
		}
		files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		var text strings.Builder
		for _, file := range files {
			more, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(more)
		}
		for name := range strings.SplitSeq(strings.NewReplacer("$\\\n", "", "\t", "").Replace(names[1]), "|") {
			if !strings.Contains(text.String(), "\nfunc "+name+"(") {
				t.Errorf("%s of the Makefile names %s, which is not a test in %s", list, name, dir)
			}
		}
	}
}
