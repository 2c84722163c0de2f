// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// retireLost retires the host of the operation in flight, which will not return. One transaction releases the operation
// and records the retirement, unless the host has a host record again by then. Afterwards this host removes the member
// like any member that an operator names. The removal request is on this host's disk, and waits until the member counts
// as gone. If quorumd stops in between, the status shows a retired host with a member, and `quorumctl member remove`
// removes that member.
func (o *Operator) retireLost(ctx context.Context, r *round.Round, seen retiredSeen, req control.RetireRequest,
	by string,
) (control.Retirement, error) {
	cannot := "cannot retire " + req.Host + ": "
	v := seen.view(r.View)
	host, m, listed := seen.lost(v, req.Host)
	if err := seen.unknownHosts(r, cannot); err != nil {
		return control.Retirement{}, err
	}
	against := policy.AgainstRetireLost(v, host.Host)
	if pending, _ := o.opt.Files.Removals(); against == nil && listed && pending != nil {
		against = pending.At(o.opt.Wall()).Against(m.ID, r.Removes(o.opt.Config.Host.ID))
	}
	if against != nil {
		against.Hint = strings.ReplaceAll(against.Hint, "remove NAME", "remove "+m.Name)
		return control.Retirement{}, refused(cannot, against)
	}
	if err := seen.full(cannot); err != nil {
		return control.Retirement{}, err
	}
	host.By, host.Reason, host.Since, host.Unreadable = by, req.Reason, o.opt.Wall().UTC(), false
	out := publish.RetirementOf(v, host)
	out.Steps, out.Lost, out.DryRun = policy.RetireLostPlan(v), true, req.DryRun
	conditions, then, err := o.retireTxn(v, seen, host, &out)
	if err != nil {
		return control.Retirement{}, err
	}
	ends, release, err := o.releaseTxn(ctx, *r.Op, r.OpAt, req.Reason, by, cannot)
	if err != nil || req.DryRun {
		return out, err
	}
	away := clientv3.Compare(clientv3.ModRevision(o.keys.Host(host.Host)), "=", 0)
	if _, err := o.write(ctx, slices.Concat(conditions, ends, []clientv3.Cmp{away}), append(then, release...), cannot,
		"quorumctl retire"); err != nil {
		return control.Retirement{}, err
	}
	o.noteReleased(ctx, *r.Op, req.Reason, by)
	o.note(ctx, "RETIRED", fmt.Sprintf("%s, lost in an operation, by %s: %s", host.Name, by, req.Reason))
	o.opt.Wake()
	if !listed {
		return out, nil
	}
	_, err = o.askRemoval(ctx, r, m, control.RemovalRequest{
		Reason: req.Reason, For: control.Duration(control.MaxRemoval),
	}, by, host.Host, host.Name+" is retired and its operation has ended, but its member is not removed: ")
	return out, err
}

// lost returns the retirement to record for the host of the operation in flight, if the host has this name or ID, and
// the host's member if it is listed. An earlier retirement keeps the fields that this version does not know.
func (s retiredSeen) lost(v policy.View, name string) (host round.Retired, m policy.Member, listed bool) {
	op := v.Op
	if op == nil || op.Host != name && op.HostName != name { // the policy refuses this host
		return round.Retired{Host: name, Retired: record.Retired{Name: name}}, policy.Member{}, false
	}
	host = round.Retired{Host: op.Host}
	if i := slices.IndexFunc(s.retired, func(r round.Retired) bool { return r.Host == op.Host }); i >= 0 {
		host = s.retired[i]
	}
	m, listed = v.LostMember()
	host.Name, host.PeerURL, host.MemberID = op.HostName, op.PeerURL, record.MemberID(m.ID)
	return host, m, listed
}
