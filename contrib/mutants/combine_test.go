// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestOneSourceContainsTheMutantsOfFunctionsAndMethods(t *testing.T) {
	t.Parallel()
	source := []byte(`package p

const limit = 3

type t struct{ n int }

func (x *t) grow(by ...int) { x.n += len(by) + 1 }

func blank(_ int) bool { return true }
`)
	found, err := mutants("p.go", source)
	if err != nil {
		t.Fatal(err)
	}
	var all []numbered
	for i, m := range found {
		all = append(all, numbered{m, i + 1})
	}
	whole, pkg, outside, err := combine("p.go", source, all)
	if err != nil || pkg != "p" {
		t.Fatal(pkg, err)
	}
	for _, m := range all {
		alone := m.function != "grow"
		if slices.Contains(outside, m.number) != alone {
			t.Errorf("%s needs a separate binary: %v", m, !alone)
		}
	}
	for _, want := range []string{
		"{ switch selectedMutant { case ", "x.grow_mutant2(by...); return;", "func (x *t) grow_mutant2(by ...int) {",
		"//line mutant2.go:1\n",
	} {
		if !strings.Contains(string(whole), want) {
			t.Errorf("%q is missing in\n%s", want, whole)
		}
	}
}
