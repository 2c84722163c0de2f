// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// hosts is how many faults are provoked at once, unless -parallel says so. More of them make each other's disk slow.
const hosts = 3

func TestMain(m *testing.M) {
	update := flag.Bool("update", false, "make FAULTS.md of the rows")
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	var err error
	if !given {
		err = flag.Set("test.parallel", strconv.Itoa(hosts))
	}
	if *update {
		text, failed := document(".")
		err = errors.Join(err, failed)
		if failed == nil {
			err = errors.Join(err, os.WriteFile("FAULTS.md", []byte(text), 0o644))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestTheTableIsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	want, err := document(".")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("FAULTS.md is not what the rows say: run `go test ./contrib/faults -update`")
	}
}

// A code that is renamed, or calls for another verdict, makes its row untrue.
func TestEveryRowNamesACodeThatThereIs(t *testing.T) {
	t.Parallel()
	known := health.Problems()
	for _, p := range places() {
		rows, err := load(".", p.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Fault == "" || r.How == "" || r.Seconds <= 0 || r.Verdict == "" {
				t.Errorf("%s: a row lacks something: %+v", p.name, r)
			}
			if strings.Contains(r.Text+r.Cause, "/tmp/") {
				t.Errorf("%s: %s: %q holds for one machine alone", p.name, r.Fault, r.Text+r.Cause)
			}
			if r.Code != "" && !slices.ContainsFunc(known, func(k health.Problem) bool {
				return string(k.Code) == r.Code && k.State.String() == r.Finding
			}) {
				t.Errorf("%s: %s: no problem %s calls for %s; run `make fault-table`",
					p.name, r.Fault, r.Code, r.Finding)
			}
		}
	}
}
