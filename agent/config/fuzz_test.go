// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse checks that Parse, for any input, returns a configuration that survives being written and read again, or a
// list of problems that is safe to print.
func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(everyKey))
	f.Add(Default())
	f.Add([]byte(uncommented(string(Default()))))
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("quorumd.yaml", data, n1)
		if err != nil {
			checkErrors(t, err, len(data))
			return
		}
		written, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse("written.yaml", written, n1)
		if err != nil {
			t.Fatalf("the accepted configuration is refused when written again: %v\n%s", err, written)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	})
}

func checkErrors(t *testing.T, err error, size int) {
	errs, ok := errors.AsType[Errors](err)
	if !ok || len(errs) == 0 || len(errs) > maxProblems+1 {
		t.Fatalf("the error is %T with %d problems: %v", err, len(errs), err)
	}
	for _, p := range errs {
		if p.Message == "" || p.File != "quorumd.yaml" || p.Line < 0 || p.Line > size+1 ||
			p.Line > 0 && p.Source == "" && p.Key != "" {
			t.Errorf("a problem lacks a message, its line or its source: %+v", p)
		}
	}
	for _, r := range err.Error() {
		if r != '\n' && unicode.IsControl(r) {
			t.Errorf("the error has the control character %U: %q", r, err)
		}
	}
}
