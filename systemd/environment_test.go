// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oddValues returns values that need quoting.
func oddValues() map[string]string {
	return map[string]string{
		"PLAIN": "n1=https://10.0.0.1:2380,n2=https://10.0.0.2:2380", "EMPTY": "", "BLANKS": "  both ends \t",
		"QUOTES": `"double" and 'single'`, "BACKSLASHES": `\ \\ \n end\`, "SHELL": "$HOME `id` $(id) %n %%",
		"HASH": "# no comment ; nor this", "UNICODE": "Zürich 日本", "EQUALS": "a=b=c", "_lower9": "x",
	}
}

func TestAnEnvironmentFileMatchesTheGoldenFile(t *testing.T) {
	t.Parallel()
	text, err := formatEnvironment(oddValues())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "environment.golden", string(text))
}

func TestAnEnvironmentFileIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "etcd.env")
	if got, err := readEnvironment(path); err != nil || len(got) != 0 {
		t.Errorf("before there is one: %v, %v", got, err)
	}
	if err := writeEnvironment(path, oddValues()); err != nil {
		t.Fatal(err)
	}
	got, err := readEnvironment(path)
	if diff := cmp.Diff(oddValues(), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAnEnvironmentFileIsReplacedOnlyIfItDiffers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "etcd.env")
	write := func(vars map[string]string) os.FileInfo {
		t.Helper()
		if err := writeEnvironment(path, vars); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write(map[string]string{"A": "1", "B": "2"})
	if same := write(map[string]string{"B": "2", "A": "1"}); !os.SameFile(first, same) {
		t.Error("the same content was written again")
	}
	if other := write(map[string]string{"A": "1"}); os.SameFile(first, other) {
		t.Error("it was not replaced atomically")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestAFailedWriteLeavesTheOldFileAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "etcd.env")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeEnvironment(path, oddValues()); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if err := writeEnvironment(filepath.Join(dir, "none", "etcd.env"), oddValues()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestVariablesThatSystemdWouldDropAreRefused(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string]map[string]string{
		"line break":      {"A": "one\ntwo"},
		"carriage return": {"A": "one\rtwo"},
		"NUL":             {"A": "one\x00two"},
		"escape":          {"A": "one\x1btwo"},
		"delete":          {"A": "one\x7ftwo"},
		"not UTF-8":       {"A": "one\xfftwo"},
		"too long":        {"A": strings.Repeat("x", maxAssignment-1)},
		"no name":         {"": "x"},
		"digit first":     {"1A": "x"},
		"dash":            {"A-B": "x"},
		"equals sign":     {"A=B": "x"},
		"blank":           {"A B": "x"},
		"not ASCII":       {"Ä": "x"},
		"name over lines": {"A\nB": "x"},
	} {
		text, err := formatEnvironment(vars)
		if err == nil {
			t.Errorf("%s: accepted as %q", name, text)
			continue
		}
		if strings.Contains(err.Error(), "two") {
			t.Errorf("%s: the error shows the value: %v", name, err)
		}
	}
	if _, err := formatEnvironment(map[string]string{"A": strings.Repeat("x", maxAssignment-2)}); err != nil {
		t.Errorf("the longest that fits: %v", err)
	}
}

// handWritten is a file as operators write it. TestTheUnitSeesAHandWrittenFileAsWeReadIt compares its values with
// systemd's own parser.
const handWritten = `# comment
; comment too
A=plain
 B = blanks around 	
C="double" 'single' rest
D='single $HOME \ " quotes'
E="escapes \" \\ \$ \` + "`" + ` \n \x"
F=back\slash\ at\ the\ end\ 
G=joined \
line
H="joined \
line"
I=
J=""
K=quote"inside
no assignment
L=last wins?
L=yes
export M=no name
1N=no name
O=two # no comment
P='a'"b"c
Q=x\\y
R=a=b`

func handWrittenValues() map[string]string {
	return map[string]string{
		"A": "plain", "B": "blanks around", "C": "doublesinglerest", "D": `single $HOME \ " quotes`,
		"E": "escapes \" \\ $ ` \\n \\x", "F": "backslash at the end ", "G": "joined line", "H": "joined line",
		"I": "", "J": "", "K": `quote"inside`, "L": "yes", "O": "two # no comment", "P": "abc", "Q": `x\y`, "R": "a=b",
	}
}

func TestAHandWrittenFileIsReadAsSystemdDoes(t *testing.T) {
	t.Parallel()
	got, err := parseEnvironment(handWritten)
	if diff := cmp.Diff(handWrittenValues(), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"A=\"open": "open", "A='open": "open", "A=end\\": "end", "A=\"end\\": "end", "A=one\r\nB=two": "one", "A=": "",
		"\n\n\tA=x\n": "x",
	} {
		if got, err := parseEnvironment(text); err != nil || got["A"] != want {
			t.Errorf("%q is parsed as %q, %v; want A=%q", text, got, err, want)
		}
	}
	if got, err := parseEnvironment("A=\xff"); err == nil {
		t.Errorf("not UTF-8, but accepted as %q", got)
	}
}

func FuzzEnvironmentIsReadBackAsItWasWritten(f *testing.F) {
	for name, value := range oddValues() {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		vars := map[string]string{name: value, "Z": "after"}
		text, err := formatEnvironment(vars)
		if err != nil {
			return
		}
		got, err := parseEnvironment(string(text))
		if err != nil || !maps.Equal(got, vars) {
			t.Errorf("%q became %q, %v, through %q", vars, got, err, text)
		}
	})
}

func FuzzParsedEnvironmentHasOnlyValidNames(f *testing.F) {
	f.Add(handWritten)
	f.Fuzz(func(t *testing.T, text string) {
		vars, err := parseEnvironment(text)
		if err != nil {
			return
		}
		for name := range vars {
			if !validName(name) {
				t.Errorf("%q is parsed with the name %q", text, name)
			}
		}
	})
}
