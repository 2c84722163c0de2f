// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestEveryProblemOfABadFileIsReported(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d files in testdata/bad: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := parse(filepath.Base(file), data, n1)
			if _, ok := errors.AsType[Errors](err); !ok {
				t.Fatalf("the error is %T (%v), not Errors", err, err)
			}
			if diff := cmp.Diff(Config{}, c); diff != "" {
				t.Errorf("a configuration came with the error:\n%s", diff)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", err.Error()+"\n")
		})
	}
}

func TestNoErrorNamesAGoType(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{
			"config.", "time.Duration", "string", "bool", "int ", "uint", "struct", "map[",
			"!!", "unmarshal", "yaml: ", "reflect", "panic",
		} {
			for line := range strings.Lines(string(data)) {
				line = strings.TrimPrefix(line, strings.TrimSuffix(filepath.Base(file), ".golden")+".yaml")
				if !strings.HasPrefix(line, "    | ") && strings.Contains(line, word) {
					t.Errorf("%s contains %q in: %s", file, word, line)
				}
			}
		}
	}
}

func TestHostileFileIsRefusedWithOneError(t *testing.T) {
	t.Parallel()
	var manyKeys strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&manyKeys, "key%d: x\n", i)
	}
	cases := []struct{ name, data, want string }{
		{"ten megabytes", strings.Repeat("# comment\n", 1<<20), "larger than 1 MiB"},
		{"one byte too many", valid + strings.Repeat("#", MaxFileSize+1-len(valid)), "larger than 1 MiB"},
		{"deep lists", strings.Repeat("[", 1<<20), "exceeded max depth"},
		{"deep sections", strings.Repeat("{a: ", 1<<18), "exceeded max depth"},
		{"deep indentation", strings.Repeat("- ", 1<<19), "exceeded max depth"},
		{"one long word", strings.Repeat("a", 1<<20), "must be keys with values"},
		{"one long key", "? " + strings.Repeat("a", 1<<19) + "\n: 1\n", "unknown key"},
		{"many keys", manyKeys.String(), "more than 100 problems; the others are not listed"},
		{"many documents", strings.Repeat("---\na: 1\n", 1<<16), "a second YAML document begins here"},
		{"a second document that is broken", valid + "---\n[\n", "not valid YAML"},
		{"many aliases", "a: &a x\nb: [" + strings.Repeat("*a,", 1<<18) + "]\n", "anchors and aliases"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse("quorumd.yaml", []byte(c.data), n1)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %.300v, want one with %q", err, c.want)
			} else if size := len(err.Error()); size > 40_000 {
				t.Errorf("the error has %d bytes", size)
			}
		})
	}
}

// panicking is a reader that panics like a failed check in the YAML parser.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("internal error") }

func TestPanicOfTheYAMLParserIsAnError(t *testing.T) {
	t.Parallel()
	var n yaml.Node
	if err := decodeNode(yaml.NewDecoder(panicking{}), &n); err == nil ||
		!strings.Contains(err.Error(), "the parser gave up: internal error") {
		t.Errorf("got %v", err)
	}
}

func TestFileOfExactlyTheMaximumSizeIsRead(t *testing.T) {
	t.Parallel()
	mustParse(t, valid+strings.Repeat("#", MaxFileSize-len(valid)))
}

func TestPrivateKeyPastedByMistakeIsNotShown(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"AGE-SECRET-KEY-1", "age-secret-key-pq-1"} {
		shown := quote(begin+"VERYSECRET") + excerpt("  encryptTo: ["+begin+"VERYSECRET]")
		if err := checkRecipient(begin + "VERYSECRET"); err == nil {
			t.Error("a private key counts as a recipient")
		} else {
			shown += err.Error()
		}
		if strings.Contains(shown, "VERYSECRET") {
			t.Error(shown)
		}
	}
}
