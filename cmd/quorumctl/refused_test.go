// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
)

func TestBootstrapPreviewReportsRefusal(t *testing.T) {
	t.Parallel()
	d := scene(t, "fresh")
	d.fail = &control.Error{
		Status: 409, Code: "CLUSTER_EXISTS", Message: "cannot bootstrap: something answers at http://192.0.2.7:2379",
		Hint: "check whether a cluster runs there without a quorum",
	}
	socket, _ := serve(t, d)
	r := quorumctl(t, socket, "bootstrap")
	if r.code != exitFault || r.stdout != "" ||
		r.stderr != "quorumctl: cannot bootstrap: something answers at http://192.0.2.7:2379\n→ check whether "+
			"a cluster runs there without a quorum\n" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	d.fail = nil
	if r := quorumctl(t, socket, "bootstrap"); r.code != exitOK ||
		!strings.Contains(r.stdout, "would start the new cluster") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestStatusShowsReasonsThatNeedAnOperator(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.status.Reasons = []control.Reason{
		{Code: "IDLE", Text: "nothing to do"},
		{Code: "UNIT_DISABLED", Text: "the unit is not enabled", Caution: true},
		{Code: "SETTLING", Text: "2s of the cooldown of 1m remain"},
	}
	socket, _ := serve(t, d)
	want := "  because IDLE: nothing to do (and 1 more reason: quorumctl explain)\n  caution UNIT_DISABLED: " +
		"the unit is not enabled\n"
	if r := quorumctl(t, socket, "status"); r.code != exitOK || !strings.HasSuffix(r.stdout, want) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestResumeWithoutAPauseSucceeds(t *testing.T) {
	t.Parallel()
	d := scene(t, "steady")
	d.fail = &control.Error{Status: 409, Code: control.CodeNotPaused, Message: "cannot resume: the cluster is " +
		"not paused"}
	socket, _ := serve(t, d)
	if r := quorumctl(t, socket, "resume"); r.code != exitOK || r.stdout != "nothing is paused\n" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestHistoryReportsMissingLines(t *testing.T) {
	t.Parallel()
	d := scene(t, "etcd-down")
	d.lines, d.fail = sampleHistory(), control.ErrNotNewest
	socket, _ := serve(t, d)
	if r := quorumctl(t, socket, "history"); r.code != exitOK || !strings.Contains(r.stdout, "PROMOTE") ||
		!strings.Contains(strings.Join(strings.Fields(r.stdout), " "),
			"no voter answers: these are the lines that quorumd on this host has written since its start; newer "+
				"lines and those of other hosts are missing") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := quorumctl(t, socket, "history", "-o", "json"); r.code != exitOK ||
		!strings.Contains(r.stdout, `"notNewest": true`) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
