// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALineWithAPatternBecomesOneForEachFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b.md", "a.md", "a.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line := "  - {src: DIR/FILE, dst: /usr/share/doc/TO, packager: rpm, type: doc, file_info: {mode: 0644}}\n"
	entry := func(file, to string) string {
		return strings.NewReplacer("DIR", dir, "FILE", file, "TO", to).Replace(line)
	}
	other := "  - {src: packaging/copyright, dst: /usr/share/doc/quorumd/copyright}\n"
	got, err := expand(other + entry("*.md", "docs/") + other)
	if want := other + entry("a.md", "docs/a.md") + entry("b.md", "docs/b.md") + other; err != nil || got != want {
		t.Errorf("%v: it is\n%s\nwant\n%s", err, got, want)
	}
	if _, err := expand(entry("*.txt", "docs/")); err == nil || !strings.Contains(err.Error(), "no file matches") {
		t.Errorf("nothing to package is no error: %v", err)
	}
}
