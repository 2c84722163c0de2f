// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files with the policy's decisions")

// checkGolden compares the decisions for these scenes, as textOf formats them, with a golden file in testdata.
func checkGolden(t *testing.T, base func() View, scenes []scene) {
	t.Helper()
	var got bytes.Buffer
	for _, s := range scenes {
		v := base()
		if s.change != nil {
			s.change(&v)
		}
		fmt.Fprintf(&got, "%s\n%s", s.name, textOf(Decide(v)))
	}
	path := filepath.Join("testdata", t.Name(), strings.NewReplacer(" ", "-", ",", "", "'", "", ":", "").
		Replace(scenes[0].name)+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./agent/policy -update writes it", err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the decisions of %s have changed; go test ./agent/policy -update, and read git diff. "+
			"Now:\n%s", path, &got)
	}
}

// textOf formats the steps, the reasons, the role and the next observation of a decision. It leaves out the notes.
func textOf(d Decision) string {
	var out strings.Builder
	step := func(label string, s Step) {
		if s != (Step{}) {
			fmt.Fprintf(&out, "    %s %s", label, s.Kind)
			for _, f := range []struct {
				name  string
				value any
				set   bool
			}{
				{"as", s.Target, s.Target != ""},
				{"phase", s.Phase, s.Phase != ""},
				{"member", s.MemberID, s.MemberID != 0},
				{"outcome", s.Outcome, s.Outcome != ""},
				{"why", s.Why, s.Why != ""},
			} {
				if f.set {
					fmt.Fprintf(&out, "; %s: %v", f.name, f.value)
				}
			}
			out.WriteString("\n")
		}
	}
	step("step", d.Step)
	step("would", d.Would)
	for _, r := range d.Reasons {
		fmt.Fprintf(&out, "    %s: %s\n", r.Code, r.Text)
	}
	fmt.Fprintf(&out, "    it is a %s", d.Role)
	if d.Waiting != "" {
		fmt.Fprintf(&out, "; waits for: %s", d.Waiting)
	}
	if d.Again != 0 || len(d.Behind) > 0 {
		fmt.Fprintf(&out, "; looks again in: %s, at: %v", d.Again.Round(time.Millisecond), d.Behind)
	}
	out.WriteString("\n")
	return out.String()
}
