// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"fmt"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// TransferOf returns the plan of a leadership transfer to a voter, as of the given round.
func TransferOf(r *round.Round, to policy.Member) control.Transfer {
	out := control.Transfer{Unchanged: to.Leader}
	out.MemberID, out.Name = record.MemberID(to.ID), labelOf(to)
	for _, m := range r.View.Cluster.Members {
		if m.Leader {
			out.From = labelOf(m)
		}
	}
	out.Steps, out.Warnings = policy.TransferPlan(r.View, to)
	return out
}

func labelOf(m policy.Member) string { return cmp.Or(m.Name, fmt.Sprintf("%x", m.ID)) }

// TransferText describes a requested leadership transfer for the history.
func TransferText(k control.RequestedTransfer) string {
	text := fmt.Sprintf("from %s to %s, requested by %s", cmp.Or(k.From, "no leader"), k.Name, k.By)
	if k.Reason != "" {
		text += ": " + k.Reason
	}
	return text
}

// transferStatus returns the leadership transfer requested on this host, and how the last one ended.
func (p *Publisher) transferStatus(r *round.Round) (*control.TransferStanding, *control.TransferEnd) {
	k, last := p.files.Transfers()
	if k == nil {
		return nil, last
	}
	out := control.TransferStanding{RequestedTransfer: k.RequestedTransfer}
	if r != nil {
		v, asked := r.View, k.At(r.At)
		v.TransferAsked = &asked
		why := policy.TransferWaits(v)
		out.Code, out.Text = why.Code, why.Text
	}
	return &out, last
}

// reportTransfer ends this host's request to transfer leadership, with a line in the history, if the round decided to
// end it.
func (p *Publisher) reportTransfer(r *round.Round) {
	note := r.Decision.Notes.Transfer
	if !note.Ends || !p.files.EndTransfer(r.Transfer, note.Code, note.Text, r.Wall) {
		return
	}
	code, text := "LEADERSHIP_TRANSFERRED", TransferText(r.Transfer.RequestedTransfer)
	if note.Code != "" {
		code, text = string(note.Code), "leadership transfer "+text+" has ended: "+note.Text
	}
	p.log.Info("leadership transfer request ended", "code", code, "text", text)
	p.journal.Note(r.Revision, Entry{Kind: "operator", Code: code, Text: text})
}
