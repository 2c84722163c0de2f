// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/control"
)

// Backup describes the cluster's last snapshots and restore tests, if there are any.
func Backup(s control.Status) []Line {
	b := s.Backup
	if b == nil {
		return nil
	}
	last := "no snapshot yet"
	if b.Saved != nil {
		last = fmt.Sprintf("last snapshot %s ago at revision %d by %s", Span(s.Time.Sub(*b.Saved)), b.Revision, b.Host)
	}
	var lines []Line
	if b.Saved != nil || b.Next != "" {
		lines = append(lines, Line{{Text: last + After("; ", b.Next)}})
	}
	lines = append(lines, failedAttempt(s.Time, "saving a snapshot failed", b.Failed, b.FailedHost, b.Cause)...)
	if b.RestoreTest != nil {
		lines = append(lines, restoreTest(s.Time, *b.RestoreTest)...)
	}
	return lines
}

func restoreTest(now time.Time, d control.RestoreTest) []Line {
	last := "no restore test has passed yet"
	if d.RestoreTested != nil {
		last = fmt.Sprintf("last passed restore test %s ago: %s, %s, %s on %s", Span(now.Sub(*d.RestoreTested)), d.Name,
			Count(int(d.Keys), "key", "keys"), Latency(d.TookSeconds), d.Host)
	}
	var lines []Line
	if d.RestoreTested != nil || d.Next != "" {
		lines = append(lines, Line{{Text: last + After("; ", d.Next)}})
	}
	return append(lines, failedAttempt(now, "a restore test failed", d.Failed, d.FailedHost, d.Cause)...)
}

// failedAttempt describes a failed attempt, if there was one.
func failedAttempt(now time.Time, what string, at *time.Time, host, cause string) []Line {
	if at == nil {
		return nil
	}
	return []Line{{
		{Text: fmt.Sprintf("%s %s ago on %s:", what, Span(now.Sub(*at)), host), Tone: Bad}, {Text: " " + cause},
	}}
}
