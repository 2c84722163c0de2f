// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// presence keeps this host's record in etcd. It is written when what it says changes, and its
// lease is renewed from the loop, so that the record of a loop that hangs goes away.
type presence struct {
	opt       Options
	keys      record.Keys
	log       *slog.Logger
	lease     clientv3.LeaseID // or 0; what else stands for as long as this agent runs may hang on it
	written   record.Host
	writtenAt int64 // the revision of that
	renewed   time.Duration
	p99       float64       // of the disk, as last published
	p99At     time.Duration // and when that last changed
	p99Of     health.State  // and with which verdict
	sights    sights
	writes    writeMean
	files     *hoststate.State
	noting    poll.Look[struct{}]
}

// newPresence makes one that has written nothing yet.
func newPresence(opt Options, keys record.Keys, files *hoststate.State) *presence {
	return &presence{opt: opt, keys: keys, log: opt.Logger, files: files}
}

// mine tells whether a record with this host's ID is this host's own: written by this agent, or by the one before a
// reboot that could not take it back, as when the power is lost.
func (p *presence) mine(h record.Host) bool {
	return h.Instance == p.opt.Instance || slices.Contains(p.files.Instances(), h.Instance)
}

// note remembers across a reboot who this agent is. It is written beside the loop: the disk may hang.
func (p *presence) note(ctx context.Context) {
	if slices.Contains(p.files.Instances(), p.opt.Instance) {
		return
	}
	p.noting.Refresh(ctx, p.opt.Now, noteEvery, noteBound, func(context.Context) (struct{}, error) {
		p.opt.noting("instance")
		err := p.files.NoteInstance(p.opt.Instance)
		if err != nil {
			p.log.Warn("cannot save the instance ID; after a power loss this agent mistakes its own host record "+
				"for another agent's until the lease expires", "error", err)
		}
		return struct{}{}, err
	})
}

// Renewals is how often in its time to live the presence lease is renewed.
const Renewals = 3

// publish writes the record if it has changed, or if it is gone.
func (p *presence) publish(ctx context.Context, r *round.Round) {
	if r.OwnHost != nil && !p.mine(*r.OwnHost) {
		return // another agent's; conflict says so
	}
	p.note(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.renew(ctx)
	if r.EtcdAt != r.At {
		return // what stands in etcd is not known well enough to write over it
	}
	own := p.record(r)
	// A word that was told while nothing was read may take effect late, and stand where a newer record stood.
	if r.OwnHost != nil && p.lease != 0 && r.OwnHostAt == p.writtenAt && reflect.DeepEqual(own, p.written) {
		return
	}
	if err := p.write(ctx, own, r.OwnHostAt); err != nil {
		p.log.Warn("cannot write the host record", "error", err)
	}
}

// renew keeps the lease alive, and forgets it when etcd does not know it any more.
func (p *presence) renew(ctx context.Context) {
	ttl := p.opt.Config.Timing.PresenceTTL
	now := p.opt.Now()
	if p.lease == 0 || now-p.renewed < ttl/Renewals {
		return
	}
	left, err := p.opt.Etcd.KeepAliveOnce(ctx, p.lease)
	switch {
	case err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) && now-p.renewed < ttl:
		return // tried again in the next round
	case err != nil || left <= 0:
		p.lease = 0
	default:
		p.renewed = now
	}
}

// write puts the record if the key is still as it was read.
func (p *presence) write(ctx context.Context, own record.Host, at int64) error {
	value, err := record.Encode(own)
	if err != nil {
		return err
	}
	if p.lease == 0 {
		now := p.opt.Now()
		lease, _, err := p.opt.Etcd.Grant(ctx, int64(p.opt.Config.Timing.PresenceTTL/time.Second))
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
		// Where etcd has no room, or answers nothing, what stands is still this host's, and is kept.
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

// word tells the verdict while no read comes back in time, and keeps the record: a write that takes longer than anybody
// waits for it takes effect all the same, and who leads looks for what the others say of themselves. Of the rest
// nothing is known that would be worth telling.
func (p *presence) word(ctx context.Context, r *round.Round) {
	if p.lease == 0 || p.written.ID == "" {
		return
	}
	p.tellVerdict(ctx, r) // first: behind such a leader the renewal, too, may take as long as it may
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.renew(ctx)
}

// tellVerdict writes over the very record that this agent knows to stand there, and over no other: a word that takes
// effect late must not stand where a newer one does, or a record that was written when reads came back.
func (p *presence) tellVerdict(ctx context.Context, r *round.Round) {
	ctx, cancel := context.WithTimeout(ctx, p.opt.Config.Timing.CallTimeout)
	defer cancel()
	p.heard(ctx)
	own := p.written
	p.verdict(&own, r)
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
	case err != nil: // it may take effect all the same, so what stands there is not known
		p.written.Health = ""
		p.log.Debug("no response to publishing this host's health state", "error", err)
	case answer.Succeeded:
		p.written, p.writtenAt = own, answer.Header.GetRevision()
	}
}

// heard looks whether a word has taken effect that nobody has answered, in what this host's own member holds: that
// needs nobody's agreement, and comes back behind every leader. An old picture shows an old revision, over which
// nothing is written.
func (p *presence) heard(ctx context.Context) {
	if p.written.Health != "" {
		return
	}
	key := p.keys.Host(p.opt.Config.Host.ID)
	found, err := p.opt.Etcd.ReadAt(ctx, p.opt.Config.Etcd.ClientURL, cluster.Span{Start: key})
	if err != nil || len(found.Pairs) != 1 {
		return
	}
	pair := found.Pairs[0] // what hangs on this lease is this agent's own
	if stands, err := record.Decode[record.Host](pair.Value); err == nil && pair.Lease == int64(p.lease) &&
		pair.ModRevision > p.writtenAt {
		stands.Version = 0 // as it is before it is encoded
		p.written, p.writtenAt = stands, pair.ModRevision
	}
}

// verdict is what a host's record says of how it is.
func (p *presence) verdict(h *record.Host, r *round.Round) {
	h.Health, h.HealthText, h.Spares, h.Recovers = r.Verdict.State.String(), "", nil, r.Verdict.Recovers
	if r.Verdict.State != health.OK && r.Verdict.State != health.Qualifying {
		h.HealthText = string(r.Verdict.Code) // the code, not the text with its ever new numbers
		h.Spares = health.Everything.Without(r.Verdict.Gates).Names()
	}
}

// leave ends the lease, and with it the record.
func (p *presence) leave(ctx context.Context) {
	if p.lease == 0 {
		return
	}
	if err := p.opt.Etcd.Revoke(ctx, p.lease); err != nil {
		p.log.Debug("cannot delete the host record; it expires with its lease", "error", err)
	}
}

// record is what this host says of itself.
func (p *presence) record(r *round.Round) record.Host {
	c, v := p.opt.Config, r.View
	h := record.Host{
		ID: c.Host.ID, Name: c.Host.Name, Domain: c.Host.Domain, Instance: p.opt.Instance, BootID: p.opt.BootID,
		ClientURL: c.Etcd.ClientURL, PeerURL: c.Etcd.PeerURL, Mode: string(c.Mode), AgentVersion: p.opt.Version,
		Role: string(r.Decision.Role), Health: r.Verdict.State.String(), Qualified: r.Verdict.Qualified,
		Waiting: string(r.Decision.Waiting), FsyncP99: p.steadyP99(r.At, r.Verdict.Figures.WAL.P99, r.Verdict.State),
	}
	if r.Request != nil && !r.View.Asked.Over {
		h.Wants, h.AskedAt = string(r.Request.Work), r.Request.Since.UnixMilli()
	}
	h.Turn = r.OperationBegan()
	h.Sees = p.sights.steady(r)
	h.MemberLost = policy.OwnMemberLost(v)
	b := c.Backup
	h.Stores = b.Store.Directory != "" || b.Store.S3 != nil
	if b.Drill > 0 {
		h.Drills = string(policy.CanTestRestore(v, h.Stores, len(b.EncryptTo) == 0 || b.IdentityFile != ""))
	}
	if h.Answers = p.written.Answers; p.asks(r) && r.AnswersNow() {
		h.Answers = r.OpAt
	}
	if v.Self.Etcd.Known() {
		h.EtcdVersion = v.Self.Etcd.String()
	}
	if m, ok := r.Membership.ByPeerURL(c.Etcd.PeerURL); ok {
		h.MemberID = record.MemberID(m.ID)
	}
	p.verdict(&h, r)
	p.writes.publish(&h, r, policy.PublishesWrites(v))
	return h
}

// asks tells whether the operation in flight asks this host how it is: a host is about to stop its voter, or to take
// the place of a dead one, and waits for the word of every other. A round that has slept does not answer, its verdict
// may be as old as its sleep.
func (p *presence) asks(r *round.Round) bool {
	return policy.Answers(r.View, r.Decision.Role) && p.opt.Now()-r.At < 2*p.opt.Config.Timing.CallTimeout
}

// p99Every is how often the published p99 of the disk may change. It ranks hosts and decides nothing
// else, and a busy disk's changes from minute to minute.
const p99Every = 10 * time.Minute

// steadyP99 gives the p99 to publish: the one before, unless the disk has become clearly quicker or
// slower and the last change is a while ago, or the verdict is another one: what is SLOW would else show the p99 of
// when it was not. A disk that was not measured has the p99 of before.
func (p *presence) steadyP99(now, p99 time.Duration, verdict health.State) float64 {
	level := quantised(p99)
	soon := p.p99 != 0 && verdict == p.p99Of && now-p.p99At < p99Every
	if level == 0 || near(p99, p.p99) || soon {
		return p.p99
	}
	p.p99, p.p99At, p.p99Of = level, now, verdict
	return level
}

// quantised gives a p99 in seconds, rounded up to a power of two of 0.125 ms; 0 when it is not known.
func quantised(p99 time.Duration) float64 {
	if p99 <= 0 {
		return 0
	}
	step := 125 * time.Microsecond
	for step < p99 && step < math.MaxInt64/2 {
		step *= 2
	}
	return step.Seconds()
}
