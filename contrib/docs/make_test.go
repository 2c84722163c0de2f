// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// go test does not fail for a name in -run or -skip that matches no test.
func TestTestsNamedByTheMakefileExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(string(makefile), -1)
	if len(named) < 50 {
		t.Fatalf("the Makefile names only %d tests", len(named))
	}
	var tests []string
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range named { // -run and -skip match the beginning of a name, too
		if !slices.ContainsFunc(tests, func(test string) bool { return strings.HasPrefix(test, name) }) {
			t.Errorf("the Makefile names %s, which does not exist", name)
		}
	}
}
