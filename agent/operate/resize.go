// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Resize records the size of the cluster in etcd. Hosts then join, or voters leave, one at a time and without further
// requests. With DryRun it only returns the plan. It records nothing if the size is already recorded.
func (o *Operator) Resize(ctx context.Context, req control.ResizeRequest, by string) (control.Resize, error) {
	cannot := fmt.Sprintf("cannot resize the cluster to %d: ", req.Voters)
	r, err := o.current(cannot)
	if err != nil {
		return control.Resize{}, err
	}
	seen, err := o.readSize(ctx, r)
	if err != nil {
		return control.Resize{}, o.refuseRead(cannot, err)
	}
	if err := seen.against(r, req, cannot); err != nil {
		return control.Resize{}, err
	}
	plan := publish.ResizeOf(r, req.Voters)
	plan.DryRun, plan.Revision = req.DryRun, seen.at
	if had := seen.size; had != nil && had.Voters == req.Voters && had.WithoutSnapshot == req.WithoutSnapshot {
		plan.Size, plan.Unchanged = publish.SizeOf(had), true
		return plan, nil
	}
	next := seen.next(req)
	next.By, next.Host, next.Since = by, o.opt.Config.Host.Name, o.opt.Wall().UTC()
	plan.Size = publish.SizeOf(&next)
	if req.DryRun {
		return plan, nil
	}
	if plan.Revision, err = o.writeSize(ctx, next, seen.at, cannot); err != nil {
		return control.Resize{}, err
	}
	text := fmt.Sprintf("from %d to %d voters by %s", r.View.Target.Voters, req.Voters, by)
	if req.Reason != "" {
		text += ": " + req.Reason
	}
	o.note(ctx, "RESIZED", text)
	o.opt.Wake()
	return plan, nil
}

// Size returns the size of the cluster and the remaining steps to reach it.
func (o *Operator) Size(context.Context) (control.Resize, error) {
	const cannot = "cannot read the size of the cluster: "
	if r := o.opt.Rounds.Reached(); r != nil {
		return publish.ResizeOf(r, r.View.Target.Voters), nil
	}
	if _, err := o.current(cannot); err != nil {
		return control.Resize{}, err
	}
	return control.Resize{}, o.unreached(cannot)
}

// unreached returns the error for a request that needs a reachable cluster.
func (o *Operator) unreached(cannot string) error {
	return refuse(control.NotNow, codeUnreachable, cannot+"the cluster cannot be reached from here",
		"quorumctl explain")
}

// sizeSeen is the recorded size as just read.
type sizeSeen struct {
	size   *record.Size // nil if no size is recorded, or if the record cannot be read
	at     int64        // the record's modification revision; 0 if there is no record
	unread int          // number of host records that the last round does not have
}

// readSize reads the recorded size, and counts the host records that the round does not have, because a spare in a
// large fleet drops most of them.
func (o *Operator) readSize(ctx context.Context, r *round.Round) (sizeSeen, error) {
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Size()},
		cluster.Span{Start: o.keys.Hosts(), End: o.keys.Lock(), Count: true})
	if err != nil {
		return sizeSeen{}, err
	}
	var seen sizeSeen
	if r.View.Resting {
		seen.unread = found.Counted - len(r.View.Hosts)
	}
	for _, pair := range found.Pairs {
		seen.at = pair.ModRevision
		size, err := decoded[record.Size](policy.RecordSize, pair)
		if err == nil {
			seen.size = &size
		} else if _, unread := errors.AsType[*unreadable](err); !unread {
			return sizeSeen{}, err
		}
	}
	return seen, nil
}

// against returns an error if the request is refused.
func (s sizeSeen) against(r *round.Round, req control.ResizeRequest, cannot string) error {
	against := policy.AgainstResize(r.View, req.Voters, req.WithoutSnapshot)
	if against != nil && against.Kind == policy.Wrong {
		return refused(cannot, against)
	}
	if err := s.unknownHosts(r, cannot); err != nil {
		return err
	}
	if err := refused(cannot, against); err != nil {
		return err
	}
	if req.IfRevision != nil && *req.IfRevision != s.at {
		return s.changed(cannot)
	}
	return nil
}

// unknownHosts returns an error if this host has not read the records of all hosts.
func (s sizeSeen) unknownHosts(r *round.Round, cannot string) error {
	if s.unread <= 0 || !r.View.Cluster.Reachable {
		return nil
	}
	return refuse(control.NotNow, control.CodeConflict, fmt.Sprintf("%sthis host is one of many spares, and does not "+
		"read the records of %d other hosts", cannot, s.unread),
		"run the command on a voter: "+strings.Join(voterNames(r), ", "))
}

// changed returns the error for a size that another operator has changed in the meantime.
func (s sizeSeen) changed(cannot string) error {
	text := "its size has changed in the meantime"
	if s.size != nil {
		text = fmt.Sprintf("it has been resized to %d by %s in the meantime", s.size.Voters, s.size.By)
	}
	return refuse(control.Conflicts, control.CodeConflict, cannot+text,
		"check it with quorumctl cluster resize, then try again")
}

// next returns the record of the requested size. It keeps the fields that a newer agent has added to the record.
func (s sizeSeen) next(req control.ResizeRequest) record.Size {
	next := record.Size{Voters: req.Voters, WithoutSnapshot: req.WithoutSnapshot, Reason: req.Reason}
	if s.size != nil {
		next.Extra = s.size.Extra
	}
	return next
}

func voterNames(r *round.Round) (names []string) {
	for _, m := range r.View.Cluster.Members {
		if !m.Learner {
			names = append(names, m.Name)
		}
	}
	return names
}

// writeSize records a size if the record is unchanged since it was read at revision at, and returns its new revision.
func (o *Operator) writeSize(ctx context.Context, size record.Size, at int64, cannot string) (int64, error) {
	value, err := record.Encode(size)
	if err != nil {
		return 0, refuse(control.Wrong, control.CodeConflict, cannot+err.Error(), "give a shorter --reason")
	}
	key := o.keys.Size()
	return o.write(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at)},
		[]clientv3.Op{clientv3.OpPut(key, string(value))}, cannot, "quorumctl cluster resize")
}
