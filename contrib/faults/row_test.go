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

// hosts is how many faults run in parallel, unless -parallel is set. More hosts would slow down each other's disks.
const hosts = 3

func TestMain(m *testing.M) {
	update := flag.Bool("update", false, "generate FAULTS.md from the rows")
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

func TestTableMatchesRows(t *testing.T) {
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
		t.Error("FAULTS.md differs from the rows: run `go test ./contrib/faults -update`")
	}
}

// A row is out of date if its code was renamed or has a different health state now.
func TestEveryRowHasAKnownCode(t *testing.T) {
	t.Parallel()
	known := health.Problems()
	for _, p := range components() {
		rows, err := load(".", p.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Fault == "" || r.How == "" || r.Seconds <= 0 || r.State == "" {
				t.Errorf("%s: incomplete row: %+v", p.name, r)
			}
			if strings.Contains(r.Text+r.Cause, "/tmp/") {
				t.Errorf("%s: %s: %q is specific to one machine", p.name, r.Fault, r.Text+r.Cause)
			}
			if r.Code != "" && !slices.ContainsFunc(known, func(k health.Problem) bool {
				return string(k.Code) == r.Code && k.State.String() == r.Finding
			}) {
				t.Errorf("%s: %s: no finding %s has state %s; run `make fault-table`",
					p.name, r.Fault, r.Code, r.Finding)
			}
		}
	}
}
