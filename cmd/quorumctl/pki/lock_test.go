// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"testing"
	"time"
)

func TestOneProcessAtATimeChangesADirectory(t *testing.T) {
	t.Parallel()
	const busy = "another 'quorumctl pki' is using"
	_, dir := newDirectory(t)
	a, done, err := OpenToChange(dir, today())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = OpenToChange(dir, today())
	mustRefuse(t, err, busy)
	_, err = Open(dir, today()) // it could read the key of one CA and the certificate of another
	mustRefuse(t, err, busy)
	if err := a.Begin(false, today()); err != nil {
		t.Fatal(err)
	}
	done()
	b, done, err := OpenToChange(dir, today())
	if err != nil || b.rotation == nil {
		t.Fatalf("the change of the first process is missing: %v", err)
	}
	done()
}

func TestReadersOfADirectoryDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	_, dir := newDirectory(t)
	_, done, err := open(dir, toRead, today())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	reopen(t, dir, today())
	_, _, err = OpenToChange(dir, today())
	mustRefuse(t, err, "another 'quorumctl pki' is using")
}

func TestFailedOpenReleasesTheLock(t *testing.T) {
	t.Parallel()
	_, dir := newDirectory(t)
	for range 2 {
		_, _, err := OpenToChange(dir, today().AddDate(CAYears+1, 0, 0))
		mustRefuse(t, err, "the certificate in ca.crt expired on")
	}
	_, done, err := OpenToChange(dir, today().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	done()
}
