// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func TestCheckOutputOfEveryScene(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^QUORUMD (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+` +
		`( \|( [a-z_0-9]+=-?[0-9.]+[sB]?(;[0-9.]*;;0)?)+)?\n$`)
	var all bytes.Buffer
	for _, name := range scenes() {
		socket, _ := serve(t, scene(t, name))
		r := quorumctl(t, socket, "check")
		if !form.MatchString(r.stdout) || r.stderr != "" || r.code > 3 {
			t.Errorf("%s: %d %q %q", name, r.code, r.stdout, r.stderr)
		}
		fmt.Fprintf(&all, "%s: exit code %d\n    %s", name, r.code, r.stdout)
	}
	golden(t, "check.golden", all.Bytes())
}

func TestCheckIsUnknownWithoutQuorumd(t *testing.T) {
	t.Parallel()
	r := quorumctl(t, filepath.Join(t.TempDir(), "none"), "check")
	if r.code != 3 || !strings.HasPrefix(r.stdout, "QUORUMD UNKNOWN - ") || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

func TestCheckIsUnknownForBadArguments(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"--warning": "unknown flag: --warning", "disk": `unknown command "disk"`,
	} {
		r := quorumctl(t, "SOCKET", "check", word)
		if r.code != 3 || !strings.HasPrefix(r.stdout, "QUORUMD UNKNOWN - cannot read the command line: "+want) ||
			r.stderr != "" {
			t.Errorf("%s: %+v", word, r)
		}
	}
}

func TestVoterDownForMaintenanceIsNotCriticalUntilOverdue(t *testing.T) {
	t.Parallel()
	s := scene(t, "voter-down").status
	if g, text := gradeStatus(s); g != gradeCritical {
		t.Errorf("a voter is down: %s: %s", g, text)
	}
	s.Op = &control.Op{Kind: "cycle", HostName: "n3", Deadline: s.Time.Add(1)}
	if g, text := gradeStatus(s); g == gradeCritical {
		t.Errorf("in its maintenance: %s: %s", g, text)
	}
	s.Op.Deadline = s.Time.Add(-1)
	if g, text := gradeStatus(s); g != gradeCritical {
		t.Errorf("overdue: %s: %s", g, text)
	}
}

func TestCheckWarnsOfMembersWithoutAgent(t *testing.T) {
	t.Parallel()
	s := scene(t, "steady").status
	gone := func(names ...string) {
		s.Hosts = slices.DeleteFunc(slices.Clone(s.Hosts), func(h control.HostRecord) bool {
			return slices.Contains(names, h.Name)
		})
	}
	expect := func(want grade, text string) {
		t.Helper()
		if g, output := gradeStatus(s); g != want || !strings.Contains(output, text) {
			t.Errorf("got %s: %s; want %s: %s", g, output, want, text)
		}
	}
	expect(gradeOK, "")
	gone("n2")
	expect(gradeWarning, "no quorumd on members: n2")
	s.Op = &control.Op{Kind: "cycle", HostName: "n2", Deadline: s.Time.Add(1)}
	expect(gradeOK, "")
	gone("n3")
	expect(gradeWarning, "no quorumd on members: n3")
	s.Op = nil
	expect(gradeWarning, "no quorumd on members: n2, n3")
	s.Hosts = nil // nothing has been read yet
	expect(gradeOK, "")
}

func TestPerfdataHasNoExponentsAndNoUnknownLimit(t *testing.T) {
	t.Parallel()
	s := scene(t, "steady").status
	s.Health.Disk.WAL.P99, s.Health.Disk.LimitSeconds, s.Health.Disk.FreeBytes = 0.00002, 0, 12e15
	if got := perfdata(s); !strings.HasPrefix(got,
		"fsync_wal_p99=0.00002s;;;0 fsync_direct_p99=0.0011s;;;0 disk_free=12000000000000000B;;;0 voters=3;;;0 ") {
		t.Errorf("got %s", got)
	}
}

func TestOperationExcusesOnlyItsOwnVoter(t *testing.T) {
	t.Parallel()
	s := scene(t, "steady").status
	s.Op = &control.Op{Kind: "cycle", HostName: "n3", Deadline: s.Time.Add(1)}
	s.Cluster.Voters, s.Cluster.Target, s.Cluster.FaultTolerance = 5, 5, 1
	s.Cluster.Members = slices.Clone(s.Cluster.Members)
	expect := func(want grade, text string) {
		t.Helper()
		if g, output := gradeStatus(s); g != want || !strings.Contains(output, text) {
			t.Errorf("got %s: %s; want %s: %s", g, output, want, text)
		}
	}
	down := func(name string) {
		for i := range s.Cluster.Members {
			if m := &s.Cluster.Members[i]; m.Name == name {
				m.Role, m.Live, m.Leader = policy.RoleVoter, false, false
			}
		}
	}
	down("n3")
	expect(gradeOK, "")
	down("n2")
	expect(gradeWarning, "n2")
	s.Cluster.FaultTolerance = 0
	expect(gradeCritical, "fault tolerance 0")
	down("n1")
	s.Op = nil
	expect(gradeCritical, "fault tolerance 0")
}

func TestStrandedMemberIsAWarningDuringItsOperation(t *testing.T) {
	t.Parallel()
	for _, code := range stranded() {
		s := scene(t, "steady").status
		s.Op = &control.Op{Kind: "cycle", HostName: s.Host.Name, Deadline: s.Time.Add(1)}
		s.Reasons = []control.Reason{{Code: code, Text: "measured"}}
		if g, output := gradeStatus(s); g != gradeWarning || !strings.Contains(output, code+": measured") {
			t.Errorf("%s: %s: %s", code, g, output)
		}
	}
}
