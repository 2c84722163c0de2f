// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
)

// edits gives what contrib/docs/install.md has to be changed in the configuration file that is shipped.
func edits(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../contrib/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```yaml\n")
	block, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatal("install.md has no edits of the configuration file")
	}
	return strings.Split(strings.TrimSpace(block), "\n")
}

// edited is the shipped file after somebody has typed the edits into it: each key where the file has it.
func edited(t *testing.T, file []string, edits []string) []string {
	t.Helper()
	section := regexp.MustCompile(`^[a-z]+:$`)
	at := 0
	for i := 0; i < len(edits); i++ {
		line := edits[i]
		if section.MatchString(line) {
			at = slices.Index(file, line)
		} else {
			key, _, _ := strings.Cut(line, ":")
			n := slices.IndexFunc(file[at:], func(l string) bool { return strings.HasPrefix(l, key+":") })
			if n < 0 {
				t.Fatalf("the shipped file has no line for %q", line)
			}
			last := i
			for last+1 < len(edits) && strings.HasPrefix(edits[last+1], "    - ") {
				last++
			}
			end := at + n + 1
			for strings.HasPrefix(file[end], "    - ") {
				end++
			}
			file = slices.Replace(slices.Clone(file), at+n, end, edits[i:last+1]...)
			i = last
		}
		if at < 0 {
			t.Fatalf("the shipped file has no section %s", line)
		}
	}
	return file
}

func TestTheShippedFileIsGoodAfterTheEditsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	lines := edited(t, strings.Split(string(config.Default()), "\n"), edits(t))
	if slices.ContainsFunc(lines, func(l string) bool {
		return strings.Contains(l, "192.0.2.") && !strings.Contains(l, "#")
	}) {
		t.Errorf("an example is left:\n%s", strings.Join(lines, "\n"))
	}
	check := func(what string, lines []string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "quorumd.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		r := quorumctl(t, "SOCKET", "config", "check", "--elsewhere", "-o", "wide", path)
		if r.code != exitOK || !strings.HasPrefix(r.stdout, path+": OK\n") ||
			what == "http" && r.stdout != path+": OK\n" {
			t.Errorf("%s: exit %d: %s%s", what, r.code, r.stdout, r.stderr)
		}
		if _, err := config.Load(path); err != nil { // as quorumd does
			t.Errorf("%s: %v", what, err)
		}
	}
	check("http", lines)
	for i, line := range lines { // and with the section for TLS, as install.md says
		line = strings.Replace(line, "http://", "https://", 1)
		for _, key := range []string{"  #tls:", "    #ca:", "    #cert:", "    #key:"} {
			if strings.HasPrefix(line, key) {
				line = strings.Replace(line, "#", "", 1)
			}
		}
		lines[i] = line
	}
	check("https", lines)
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "\n  tls:\n") {
		t.Errorf("there is no section for TLS:\n%s", text)
	}
}
