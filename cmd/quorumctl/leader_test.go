// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// transferring returns a backend of three voters with the plan of a leadership transfer from n1 to n2.
func transferring(t *testing.T) *fakeBackend {
	t.Helper()
	d := scene(t, "steady")
	d.transfer = control.Transfer{
		RequestedTransfer: control.RequestedTransfer{MemberID: 2, Name: "n2", From: "n1"},
		Steps: []policy.PlanStep{{
			Text: "leadership is transferred from n1 to n2, under the lock", Voters: 3, Tolerance: 1,
		}},
		Warnings: []string{"writes in flight at the old leader may be lost; clients have to retry them"},
	}
	return d
}

// transferredTo is like transferring, but the request has ended with that code.
func transferredTo(t *testing.T, code policy.ReasonCode) *fakeBackend {
	t.Helper()
	d := transferring(t)
	d.status.LastTransfer = &control.TransferEnd{
		RequestedTransfer: d.transfer.RequestedTransfer, Ended: d.status.Time.Add(time.Second), Code: code,
		Text: "n2 leads",
	}
	d.status.LastTransfer.By, d.status.LastTransfer.Since = "root", d.status.Time.Add(time.Millisecond)
	d.status.LastTransfer.Until = d.status.Time.Add(time.Minute)
	if code != "" {
		d.status.LastTransfer.Text = "it expired: held by n3"
	}
	return d
}

func TestLeaderTransferShowsItsPlanAndItsEnd(t *testing.T) {
	t.Parallel()
	asks, _ := serve(t, transferring(t))
	leads := transferring(t)
	leads.transfer.Unchanged, leads.transfer.Steps, leads.transfer.Warnings = true, nil, nil
	same, _ := serve(t, leads)
	done, _ := serve(t, transferredTo(t, ""))
	failed, _ := serve(t, transferredTo(t, policy.LockHeld))
	got := transcript(t, asks, "leader transfer n2 --dry-run --reason 'a new fan'",
		"leader transfer n2 --dry-run -o yaml",
		"leader transfer n2 --yes --reason 'a new fan'", "leader transfer --yes")
	got = append(got, transcript(t, same, "leader transfer n2 --dry-run", "leader transfer n2 --yes",
		"leader transfer n2 --yes --wait")...)
	got = append(got, transcript(t, done, "leader transfer n2 --yes --wait")...)
	got = append(got, transcript(t, failed, "leader transfer n2 --yes --wait")...)
	golden(t, "leader-transfer.golden", got)
}

func TestLeaderTransferRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	d := transferring(t)
	socket, _ := serve(t, d)
	refusesArguments(t, d, socket,
		"leader transfer n2", "leader transfer n2 n3 --yes", "leader transfer n2 --yes --wait=-1s",
	)
}
