// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/diskrecord"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// hostRecord publishes this host's record in etcd, and writes it when it changes. The loop renews the lease, so the
// record expires if the loop hangs.
type hostRecord struct {
	opt  Options
	keys record.Keys
	log  *slog.Logger
	// 0 if there is none; other keys that expire with this agent are attached to this lease, too
	lease        clientv3.LeaseID
	written      record.Host
	writtenAt    int64 // the revision at which the record was written
	renewed      time.Duration
	reachability reachability
	disk         *diskrecord.Publisher
	files        *hoststate.State
	noting       poll.Poller[struct{}]
}

// newHostRecord returns a hostRecord that has written nothing yet.
func newHostRecord(opt Options, keys record.Keys, files *hoststate.State) *hostRecord {
	return &hostRecord{opt: opt, keys: keys, log: opt.Logger, files: files, disk: diskrecord.New()}
}

// mine reports whether a record with this host's ID is this host's own: written by this agent, or by an earlier one
// that could not delete it, for example because of a power loss.
func (p *hostRecord) mine(h record.Host) bool {
	return h.Instance == p.opt.Instance || slices.Contains(p.files.Instances(), h.Instance)
}

// note saves this agent's instance ID on disk, so that the agent recognizes its record after a reboot. It writes
// outside the loop, because the disk may hang.
func (p *hostRecord) note(ctx context.Context) {
	if slices.Contains(p.files.Instances(), p.opt.Instance) {
		return
	}
	p.noting.Refresh(ctx, p.opt.Now, noteEvery, noteBound, func(context.Context) (struct{}, error) {
		p.opt.noting("instance")
		err := p.files.NoteInstance(p.opt.Instance)
		if err != nil {
			p.log.Warn("cannot save the instance ID; after a power loss this agent would mistake its own host record "+
				"for another agent's until the lease expires", "error", err)
		}
		return struct{}{}, err
	})
}

// Renewals is how many times the record's lease is renewed within its TTL.
const Renewals = 3

// publish renews the lease, and writes the record if it has changed or expired.
func (p *hostRecord) publish(ctx context.Context, r *round.Round) {
	if r.OwnHost != nil && !p.mine(*r.OwnHost) {
		return // another agent's record: policy.Conflict reports it
	}
	p.note(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.renew(ctx)
	if r.EtcdAt != r.At {
		return // this round did not read the record, so do not overwrite it
	}
	own := p.record(r)
	// Compare the revisions too: another write may have changed the record, such as a health state that took effect
	// late.
	if r.OwnHost != nil && p.lease != 0 && r.OwnHostAt == p.writtenAt && reflect.DeepEqual(own, p.written) {
		return
	}
	if err := p.write(ctx, own, r.OwnHostAt); err != nil {
		p.log.Warn("cannot write the host record", "error", err)
	}
}

// renew keeps the lease alive, and forgets it if etcd reports that it does not exist, or if no renewal has succeeded
// for its TTL.
func (p *hostRecord) renew(ctx context.Context) {
	ttl := p.opt.Config.Timing.HostRecordTTL
	now := p.opt.Now()
	if p.lease == 0 || now-p.renewed < ttl/Renewals {
		return
	}
	left, err := p.opt.Etcd.KeepAliveOnce(ctx, p.lease)
	switch {
	case err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) && now-p.renewed < ttl:
		return // the next round retries
	case err != nil || left <= 0:
		p.lease = 0
	default:
		p.renewed = now
	}
}

// write writes the record if the key still has the given revision.
func (p *hostRecord) write(ctx context.Context, own record.Host, at int64) error {
	value, err := record.Encode(own)
	if err != nil {
		return err
	}
	if p.lease == 0 {
		now := p.opt.Now()
		lease, _, err := p.opt.Etcd.Grant(ctx, int64(p.opt.Config.Timing.HostRecordTTL/time.Second))
		if err != nil {
			return err
		}
		p.lease, p.renewed = lease, now
	}
	key := p.keys.Host(p.opt.Config.Host.ID)
	answer, err := p.opt.Etcd.Txn(ctx,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at)},
		clientv3.OpPut(key, string(value), clientv3.WithLease(p.lease)))
	if err != nil {
		// If etcd has no space or does not answer, the existing record is still this host's, and its lease is kept.
		if errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) {
			p.lease = 0
		}
		return err
	}
	if answer.Succeeded {
		p.written, p.writtenAt = own, answer.Header.GetRevision()
	}
	return nil
}

// publishHealth publishes the health state and renews the lease while no read completes in time. A write can take
// effect after its call has timed out, and the leader's agent needs the other hosts' health states. The rest
// of the record stays as it was.
func (p *hostRecord) publishHealth(ctx context.Context, r *round.Round) {
	if p.lease == 0 || p.written.ID == "" {
		return
	}
	p.writeHealth(ctx, r) // publish first: with such a slow leader the renewal may time out as well
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.renew(ctx)
}

// writeHealth overwrites the record only at the revision that this agent last wrote or read. A health state that takes
// effect late must not overwrite a newer health state, or a record that was written after reads completed again.
func (p *hostRecord) writeHealth(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.confirm(ctx)
	own := p.written
	p.setHealth(&own, r)
	if reflect.DeepEqual(own, p.written) {
		return
	}
	value, err := record.Encode(own)
	if err != nil {
		p.log.Warn("cannot publish this host's health state", "error", err)
		return
	}
	key := p.keys.Host(p.opt.Config.Host.ID)
	answer, err := p.opt.Etcd.Txn(ctx,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", p.writtenAt)},
		clientv3.OpPut(key, string(value), clientv3.WithLease(p.lease)))
	switch {
	case err != nil: // the write may still take effect, so the record's content is unknown
		p.written.Health = ""
		p.log.Debug("no response to publishing this host's health state", "error", err)
	case answer.Succeeded:
		p.written, p.writtenAt = own, answer.Header.GetRevision()
	}
}

// confirm checks in the data of this host's own member whether an unanswered write of a health state has taken effect.
// This serializable read needs no quorum and completes however slow the leader is. Stale data has an old revision and
// is ignored.
func (p *hostRecord) confirm(ctx context.Context) {
	if p.written.Health != "" {
		return
	}
	key := p.keys.Host(p.opt.Config.Host.ID)
	found, err := p.opt.Etcd.ReadAt(ctx, p.opt.Config.Etcd.ClientURL, cluster.Span{Start: key})
	if err != nil || len(found.Pairs) != 1 {
		return
	}
	pair := found.Pairs[0] // with this agent's lease, the record is this agent's own
	if found, err := record.Decode[record.Host](pair.Value); err == nil && pair.Lease == int64(p.lease) &&
		pair.ModRevision > p.writtenAt {
		found.Version = 0 // encoding sets the version
		p.written, p.writtenAt = found, pair.ModRevision
	}
}

// setHealth sets the health state in a host's record.
func (p *hostRecord) setHealth(h *record.Host, r *round.Round) {
	h.Health, h.HealthText, h.Spares, h.Recovers = r.Assessment.State.String(), "", nil, r.Assessment.Recovers
	h.HealsAfter, h.Defective = r.Assessment.HealsAfter.Seconds(), r.Assessment.Defective
	h.DataDiffers = r.View.ReportsDifferentData()
	if r.Assessment.State != health.OK && r.Assessment.State != health.Qualifying {
		h.HealthText = string(r.Assessment.Code) // not the text, because numbers in it change constantly
		h.Spares = health.Everything.Without(r.Assessment.Gates).Names()
	}
}

// leave revokes the lease, which deletes the record.
func (p *hostRecord) leave(ctx context.Context) {
	if p.lease == 0 {
		return
	}
	if err := p.opt.Etcd.Revoke(ctx, p.lease); err != nil {
		p.log.Debug("cannot delete the host record; it expires with its lease", "error", err)
	}
}

// record returns this host's record.
func (p *hostRecord) record(r *round.Round) record.Host {
	c, v := p.opt.Config, r.View
	h := record.Host{
		ID: c.Host.ID, Name: c.Host.Name, Domain: c.Host.Domain, Instance: p.opt.Instance, BootID: p.opt.BootID,
		ClientURL: c.Etcd.ClientURL, PeerURL: v.Self.PeerURL, NewPeerURL: v.Self.NewPeerURL,
		NewClientURL: v.Self.NewClientURL,
		Mode:         string(c.Mode), AgentVersion: p.opt.Version,
		Role: string(r.Decision.Role), Health: r.Assessment.State.String(), Qualified: r.Assessment.Qualified,
		Waiting: string(r.Decision.Waiting),
		Learner: v.Self.Learner, MaxLearners: r.MaxLearners, NoStandbys: c.Cluster.Standbys == 0,
		PeerTLS: string(r.PeerTLS), PeerTLSProblem: policy.PeerTLSProblem(v),
		NextEtcd: r.NextEtcd.Version, NextEtcdProblem: r.NextEtcd.Problem, External: !v.Self.Drives,
	}
	if r.Request != nil && !r.View.Asked.Over {
		h.Wants, h.AskedAt = string(r.Request.Work), r.Request.Since.UnixMilli()
	}
	h.Turn = r.OperationBegan()
	h.Sees = p.reachability.steady(r)
	h.MemberLost = policy.OwnMemberLost(v)
	b := c.Backup
	h.Stores = b.Store.Directory != "" || b.Store.S3 != nil
	if b.RestoreTest > 0 {
		h.RestoreTests = string(policy.CanTestRestore(v, h.Stores, len(b.EncryptTo) == 0 || b.IdentityFile != ""))
	}
	if h.Answers = p.written.Answers; p.asks(r) && r.AnswersNow() {
		h.Answers = r.OpAt
	}
	if v.Self.Etcd.Known() {
		h.EtcdVersion = v.Self.Etcd.String()
	}
	if m, ok := r.OwnMember(r.Membership, c.Etcd.PeerURL); ok {
		h.MemberID, h.Unreached = record.MemberID(m.ID), r.Unreached(m.ID)
	}
	h.Disks = p.written.Disks // keep the last known disks while the devices cannot be read
	if seen := r.Assessment.Figures.Devices; len(seen.Chain) > 0 {
		h.Disks = seen.Identities()
	}
	p.setHealth(&h, r)
	p.disk.Set(&h, r.At, r.Wall, r.Assessment, diskrecord.Asked{
		Mean: policy.PublishesWrites(v), Figures: policy.PublishesWriteFigures(v),
	})
	h.AsksWrites = r.Assessment.AsksPeers && policy.IsVoter(v)
	return h
}

// asks reports whether the operation in flight waits for this host's health state. A host that is about to stop its
// voter, or to replace a dead one, waits until the hosts of the other voters have published theirs. A round during
// which the machine was suspended does not count, because its health state may date from before the suspension.
func (p *hostRecord) asks(r *round.Round) bool {
	return policy.MustPublish(r.View, r.Decision.Role) && p.opt.Now()-r.At < 2*p.opt.Config.Timing.CallTimeout
}
