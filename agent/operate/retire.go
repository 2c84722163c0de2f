// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Retire records in etcd that a host leaves the cluster for good, or deletes that record. The hosts' agents then act
// without further requests. If the retired host has a voter, another host joins first. With DryRun it only returns the
// plan.
func (o *Operator) Retire(ctx context.Context, req control.RetireRequest, by string) (control.Retirement, error) {
	cannot := "cannot retire " + req.Host + ": "
	switch {
	case req.Undo:
		cannot = "cannot undo the retirement of " + req.Host + ": "
	case req.Successor != "":
		cannot = "cannot replace " + req.Host + ": "
	}
	r, err := o.current(cannot)
	if err != nil {
		return control.Retirement{}, err
	}
	seen, err := o.readRetired(ctx, r)
	if err != nil {
		return control.Retirement{}, o.refuseRead(cannot, err)
	}
	if req.Lost {
		return o.retireLost(ctx, r, seen, req, by)
	}
	host, err := seen.find(r.View, req.Host, cannot)
	if err != nil {
		return control.Retirement{}, err
	}
	v := seen.view(r.View)
	if req.Undo {
		return o.undoRetirement(ctx, v, host, req, by)
	}
	next, err := successor(v, req.Successor, cannot)
	if err != nil {
		return control.Retirement{}, err
	}
	if host.At != 0 && !host.Unreadable {
		if host.Successor.Host == next.Host {
			out := publish.RetirementOf(v, host)
			out.Unchanged, out.DryRun = true, req.DryRun
			return out, nil
		}
	}
	host.Successor = next
	if err := seen.against(r, v, host, cannot); err != nil {
		return control.Retirement{}, err
	}
	return o.retire(ctx, v, seen, host, req, by)
}

// successor returns the record of a successor, given its name or ID. An unknown name is kept as it is, and the policy
// refuses it.
func successor(v policy.View, name, cannot string) (record.Successor, error) {
	next := record.Successor{Host: name, Name: name}
	found := 0
	for _, h := range v.Hosts {
		if h.ID == name || h.Name == name {
			next = record.Successor{Host: h.ID, Name: h.Name, PeerURL: h.PeerURL}
			found++
		}
	}
	if found > 1 {
		return next, refuse(control.Wrong, control.CodeBadRequest, cannot+"several hosts are named "+name,
			"name one by its ID: quorumctl status -o wide")
	}
	return next, nil
}

// RetiredHosts lists the retired hosts.
func (o *Operator) RetiredHosts(context.Context) (control.RetiredHosts, error) {
	const cannot = "cannot list the retired hosts: "
	if r := o.opt.Rounds.Reached(); r != nil {
		return control.RetiredHosts{Hosts: publish.RetiredHosts(r)}, nil
	}
	if _, err := o.current(cannot); err != nil {
		return control.RetiredHosts{}, err
	}
	return control.RetiredHosts{}, o.unreached(cannot)
}

// retiredSeen holds the retirements and the size of the cluster, as just read.
type retiredSeen struct {
	sizeSeen

	retired []round.Retired
}

// readRetired reads the retirements, and the size of the cluster.
func (o *Operator) readRetired(ctx context.Context, r *round.Round) (retiredSeen, error) {
	size, err := o.readSize(ctx, r)
	if err != nil {
		return retiredSeen{}, err
	}
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Retirements(), End: o.keys.RetirementsEnd()})
	if err != nil {
		return retiredSeen{}, err
	}
	seen := retiredSeen{sizeSeen: size}
	for _, pair := range found.Pairs {
		retired, _ := round.DecodeRetired(pair, o.keys) // an unreadable record yields the ID of its host
		seen.retired = append(seen.retired, retired)
	}
	return seen, nil
}

// view returns the view with the retirements that have just been read.
func (s retiredSeen) view(v policy.View) policy.View {
	v.Retired = nil
	for _, retired := range s.retired {
		v.Retired = append(v.Retired, retired.Policy())
	}
	return v
}

// find returns the host with that name or ID, including its retirement if it is retired.
func (s retiredSeen) find(v policy.View, name, cannot string) (round.Retired, error) {
	found := map[string]round.Retired{}
	add := func(retired round.Retired) {
		if _, known := found[retired.Host]; !known && (retired.Host == name || retired.Name == name) {
			found[retired.Host] = retired
		}
	}
	for _, h := range v.Hosts {
		host := round.Retired{Host: h.ID, Retired: record.Retired{Name: h.Name, PeerURL: h.PeerURL}}
		if i := slices.IndexFunc(s.retired, func(r round.Retired) bool { return r.Host == h.ID }); i >= 0 {
			if host.At = s.retired[i].At; s.retired[i].Unreadable {
				host.Unreadable = true
			} else {
				host = s.retired[i]
			}
		}
		if h.ID == name || h.Name == name {
			host.Name = h.Name
			add(host)
		}
	}
	for _, retired := range s.retired {
		add(retired)
	}
	var ids []string
	for id := range found {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	switch len(ids) {
	case 0: // the policy refuses to retire an unknown host
		return round.Retired{Host: name, Retired: record.Retired{Name: name}}, nil
	case 1:
		return found[ids[0]], nil
	}
	return round.Retired{}, refuse(control.Wrong, control.CodeBadRequest, cannot+"several hosts have that name",
		"name one by its ID: "+strings.Join(ids, ", "))
}

// against returns an error if the retirement of a host is refused.
func (s retiredSeen) against(r *round.Round, v policy.View, host round.Retired, cannot string) error {
	if err := s.unknownHosts(r, cannot); err != nil {
		return err
	}
	if err := refused(cannot, policy.AgainstRetire(v, host.Host, host.Successor.Host)); err != nil {
		return err
	}
	if host.At != 0 { // already retired: only its successor changes
		return nil
	}
	return s.full(cannot)
}

// full returns an error if no further retirement can be recorded.
func (s retiredSeen) full(cannot string) error {
	switch {
	case s.at != 0 && s.size == nil:
		return refuse(control.Conflicts, codeUnreadable,
			cannot+"the size of the cluster cannot be read, so it is unknown how many voters have to stay",
			"quorumctl cluster resize N writes it again")
	case len(s.retired) >= record.MaxRetired:
		return refuse(control.Conflicts, control.CodeConflict, fmt.Sprintf("%s%d hosts are retired; the limit is %d",
			cannot, len(s.retired), record.MaxRetired),
			"quorumctl retire lists them; for a host that is scrapped: quorumctl retire ID --undo")
	}
	return nil
}

func (o *Operator) retire(ctx context.Context, v policy.View, seen retiredSeen, host round.Retired,
	req control.RetireRequest, by string,
) (control.Retirement, error) {
	cannot := "cannot retire " + req.Host + ": "
	host.By, host.Reason, host.Since, host.Unreadable = by, req.Reason, o.opt.Wall().UTC(), false
	for _, m := range v.Cluster.Members {
		if m.PeerURL == host.PeerURL {
			host.MemberID = record.MemberID(m.ID)
		}
	}
	out := publish.RetirementOf(v, host)
	out.DryRun = req.DryRun
	conditions, then, err := o.retireTxn(v, seen, host, &out)
	if err != nil || req.DryRun {
		return out, err
	}
	if _, err := o.write(ctx, conditions, then, cannot, "quorumctl retire"); err != nil {
		return control.Retirement{}, err
	}
	o.note(ctx, "RETIRED", fmt.Sprintf("%s by %s: %s", host.Name, by, req.Reason))
	o.opt.Wake()
	return out, nil
}

// retireTxn returns the conditions and the operations that record the retirement of a host. If no size of the cluster
// is recorded, the same transaction records the present size, and retireTxn sets it in out. The reason is that, if the
// retirement is undone after the replacement has joined, there is one voter too many, and a surplus voter leaves only
// if a size is recorded.
func (o *Operator) retireTxn(v policy.View, seen retiredSeen, host round.Retired, out *control.Retirement,
) ([]clientv3.Cmp, []clientv3.Op, error) {
	cannot := "cannot retire " + host.Name + ": "
	value, err := record.Encode(host.Retired)
	if err != nil {
		return nil, nil, refuse(control.Wrong, control.CodeConflict, cannot+err.Error(), "give a shorter --reason")
	}
	key, size := o.keys.Retired(host.Host), o.keys.Size()
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", host.At),
		clientv3.Compare(clientv3.ModRevision(size), "=", seen.at),
	}
	then := []clientv3.Op{clientv3.OpPut(key, string(value))}
	if seen.at == 0 {
		present := record.Size{
			Voters: v.Target.Voters, By: host.By, Host: o.opt.Config.Host.Name, Since: host.Since,
			Reason: "recorded when " + host.Name + " was retired",
		}
		out.Size = publish.SizeOf(&present)
		value, err := record.Encode(present)
		if err != nil {
			return nil, nil, refuse(control.Conflicts, control.CodeConflict, cannot+err.Error(),
				"quorumctl cluster resize N")
		}
		then = append(then, clientv3.OpPut(size, string(value)))
	}
	return conditions, then, nil
}

// undoRetirement deletes the record of a host's retirement, if the host is retired.
func (o *Operator) undoRetirement(ctx context.Context, v policy.View, host round.Retired, req control.RetireRequest,
	by string,
) (control.Retirement, error) {
	cannot := "cannot undo the retirement of " + req.Host + ": "
	known := slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.ID == host.Host })
	if host.At == 0 && !known {
		return control.Retirement{}, refuse(control.Wrong, control.CodeBadRequest,
			cannot+"no host with that name or ID is retired or runs quorumd",
			"quorumctl retire lists the retired hosts")
	}
	out := publish.RetirementOf(v, host)
	out.Steps, out.Undo, out.DryRun, out.Unchanged = nil, true, req.DryRun, host.At == 0
	if req.DryRun || out.Unchanged {
		return out, nil
	}
	key := o.keys.Retired(host.Host)
	_, err := o.write(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", host.At)},
		[]clientv3.Op{clientv3.OpDelete(key)}, cannot, "quorumctl retire")
	if err != nil {
		return control.Retirement{}, err
	}
	text := fmt.Sprintf("%s by %s", out.Host.Label(), by)
	if req.Reason != "" {
		text += ": " + req.Reason
	}
	o.note(ctx, "RETIREMENT_UNDONE", text)
	o.opt.Wake()
	return out, nil
}

// write commits a change if the records are unchanged since they were read, and returns its revision. command is the
// command that shows the operator whether the change was committed.
func (o *Operator) write(ctx context.Context, conditions []clientv3.Cmp, then []clientv3.Op, cannot, command string,
) (int64, error) {
	answer, err := o.opt.Etcd.Txn(ctx, conditions, then...)
	switch {
	case err != nil:
		return 0, o.refuseCall(cannot, err, command+" shows whether the change is recorded")
	case !answer.Succeeded:
		return 0, refuse(control.Conflicts, control.CodeConflict, cannot+"the record has changed in the meantime",
			"check it with "+command+", then try again")
	}
	return answer.Header.Revision, nil
}
