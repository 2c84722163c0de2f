// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"strings"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
)

// TransferLeadership records in memory a request to transfer leadership to a voter. The agent transfers leadership
// under the lock as soon as no reason prevents it; if that takes too long, the request expires. TransferLeadership
// refuses a request that cannot be carried out now, and requests nothing if that voter leads already. With DryRun it
// only returns the plan.
func (o *Operator) TransferLeadership(ctx context.Context, req control.TransferRequest, by string) (control.Transfer,
	error,
) {
	cannot := "cannot transfer leadership: "
	if req.Host != "" {
		cannot = "cannot transfer leadership to " + req.Host + ": "
	}
	r, err := o.current(cannot)
	if err != nil {
		return control.Transfer{}, err
	}
	if r.View.Resting && !r.View.HostsFresh && r.View.Cluster.Reachable {
		return control.Transfer{}, refuse(control.NotNow, control.CodeConflict, cannot+"this host is one of many "+
			"spares, and does not read the records of the other hosts",
			"run the command on a voter: "+strings.Join(voterNames(r), ", "))
	}
	to, against := policy.TransferTarget(r.View, req.Host)
	if err := refused(cannot, against); err != nil {
		return control.Transfer{}, err
	}
	now := o.opt.Wall().UTC()
	out := publish.TransferOf(r, to)
	out.DryRun, out.Reason, out.By = req.DryRun, req.Reason, by
	out.Since, out.Until = now, now.Add(control.TransferTime)
	if out.Unchanged || req.DryRun {
		return out, nil
	}
	since := o.opt.Now()
	against = o.opt.Files.AskTransfer(hoststate.Transfer{
		RequestedTransfer: out.RequestedTransfer, Deadline: since + control.TransferTime,
	}, since)
	if err := refused(cannot, against); err != nil {
		return control.Transfer{}, err
	}
	o.note(ctx, "TRANSFER_ASKED", "leadership transfer "+publish.TransferText(out.RequestedTransfer))
	o.opt.Wake()
	return out, nil
}
