// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

// operation builds the view of the operation in flight.
func (b *Builder) operation(r *round.Round) *policy.Op {
	if r.Op == nil {
		return nil
	}
	op := r.Op
	own := op.Host == b.config.Host.ID
	view := &policy.Op{
		Kind: op.Kind, Host: op.Host, HostName: op.HostName, Target: policy.Role(op.Target), Work: policy.Work(op.Work),
		Phase: policy.OpPhase(op.Phase), Token: op.Token, MemberID: uint64(op.MemberID),
		Replaces: uint64(op.Replaces), PeerURL: op.PeerURL,
		Reason: op.Reason, Outcome: policy.ReasonCode(op.Outcome), SameBoot: !own || op.BootID == b.bootID,
		Overdue: round.Overdue(op.Until, r.Wall),
	}
	running := r.UnitErr == nil && r.Unit.State == systemd.Active && r.Unit.Job == ""
	view.Restarted = own && running && (!view.SameBoot ||
		(op.Clock > 0 && r.Unit.Since > 0 && r.At-r.Unit.Since > op.Clock))
	name := "op/" + op.Host + op.Started.String()
	view.Elapsed = b.since.Of(name, "", r.At, r.Number)
	if own && view.SameBoot && op.Clock > 0 {
		view.Elapsed = r.At - op.Clock // measured since boot, so a restart of the agent does not matter
	}
	orphaned := r.Lock == nil || r.LockAt != op.Token
	// The name includes the token, because an agent on a suspended machine may have missed another host's takeover of
	// the operation.
	view.OrphanedFor = b.since.truth(fmt.Sprintf("%s/orphaned of %d", name, op.Token), orphaned, r.At, r.Number)
	view.WrittenFor = b.since.Of(name+"/written", fmt.Sprint(r.OpAt), r.At, r.Number)
	return view
}

// requestedOperation adds to the view whether the operation for this host's request was released, and whether its
// record was deleted or differs from the request. The operation stays recorded on this host's disk until it ends here,
// is released, or the cluster changes.
func (b *Builder) requestedOperation(v *policy.View, r *round.Round) {
	k := r.Request
	if k == nil {
		return
	}
	id := b.config.Host.ID
	own := r.TakesDown(id)
	// also true if no cluster (0) is recorded with the request
	elsewhere := uint64(k.Cluster) != v.Cluster.ID
	shown := r.OpAt != 0 && (r.Op == nil || r.Op.Host == id) // an unreadable record may be this host's
	v.Asked.Released, v.Asked.RecordDeleted = k.At(b.bootID).Gone(shown, elsewhere,
		r.Released.Releases(id, k.Began))
	v.Asked.RecordDiffers = own && (!r.Op.Until.Equal(k.Until()) || r.Op.Interruptible != k.Interruptible)
}

// rolloutOf builds the view of the rollout.
func rolloutOf(r *round.Round) *policy.Rollout {
	if r.Rollout == nil {
		return nil
	}
	return &policy.Rollout{
		ID: r.Rollout.ID, Work: policy.Work(r.Rollout.Work), Runs: r.Rollout.State == record.RolloutRunning,
		Over:    r.Rollout.State == record.RolloutDone || r.Rollout.State == record.RolloutAborted,
		Upgrade: r.Rollout.Etcd, WithoutSnapshot: r.Rollout.Bare, Raises: r.Rollout.Raises, Hold: r.Rollout.Hold,
		Downgrade: r.Rollout.Downgrade, Job: r.Rollout.DowngradeJob,
		Began:   max(0, r.Wall.Sub(r.Rollout.Began())),
		Waiting: r.Rollout.Waiting(), Due: r.LastRequest == nil || !r.LastRequest.Had(*r.Rollout),
	}
}

// markStandbys marks the learners that their own hosts report as standbys or permanent learners, now or in their last
// report. For this host's own learner, only the state on this host's disk counts, because any client that can write to
// etcd may have written the host record.
func (b *Builder) markStandbys(v *policy.View, r *round.Round) {
	members := v.Cluster.Members
	if len(members) == 0 { // without a member list: keep the last reports
		return
	}
	said := map[uint64]bool{}
	for i := range members {
		m := &members[i]
		if !m.Learner {
			continue
		}
		said[m.ID] = b.standbys[m.ID]
		for _, h := range v.Hosts {
			if h.PeerURL == m.PeerURL {
				said[m.ID] = h.Role == policy.RoleStandby || h.Role == policy.RoleLearner
			}
		}
		if m.Standby = said[m.ID]; m.PeerURL == v.Self.PeerURL {
			m.Standby = r.Noted.Standby == m.ID && !contradicts(v.Data, m.ID)
		}
	}
	b.standbys = said
}

// markDomains sets the members' failure domains as reported by their hosts, or, for a silent host, as recorded on this
// host's disk. If two hosts disagree about one member, its domain is unknown.
func markDomains(v *policy.View, noted map[uint64]string) {
	for i := range v.Cluster.Members {
		m, spoken := &v.Cluster.Members[i], false
		m.Domain, m.NotedDomain = noted[m.ID], noted[m.ID]
		for _, h := range v.Hosts {
			switch {
			case h.PeerURL != m.PeerURL:
			case spoken && h.Domain != m.Domain:
				m.Domain = ""
			case !spoken:
				m.Domain, spoken = h.Domain, true
			}
		}
	}
}

// markLearners marks the permanent learners and sets the members' limits on learners and their peer certificates,
// as reported by their hosts. If two hosts disagree about the limit or the certificate of one member, that value is
// unknown. If they disagree whether the member is a permanent learner, it counts as one, because no host promotes
// or removes a permanent learner. If the host of a permanent learner is silent, this host uses what its own disk
// records, or else (for example on a new host) what the other hosts report. Whether this host's own member is a
// permanent learner depends only on this host's configuration.
func markLearners(v *policy.View, noted map[uint64]int) {
	for i := range v.Cluster.Members {
		m := &v.Cluster.Members[i]
		if m.Learner {
			m.NotedLearner = noted[m.ID]
			known := cmp.Or(m.NotedLearner, reportedLearner(v, m.ID))
			m.Permanent, m.MaxLearners = known != 0, max(0, known)
		}
		spoken := false
		for _, h := range v.Hosts {
			switch {
			case h.PeerURL != m.PeerURL:
				continue
			case !spoken:
				m.Permanent, m.MaxLearners, m.PeerTLS = m.Learner && h.Learner, h.MaxLearners, h.PeerTLS
			default:
				m.Permanent = m.Permanent || m.Learner && h.Learner
				m.MaxLearners, m.PeerTLS = agreed(m.MaxLearners, h.MaxLearners), agreed(m.PeerTLS, h.PeerTLS)
			}
			spoken = true
		}
		if m.PeerURL == v.Self.PeerURL {
			m.Permanent = m.Learner && v.Self.Learner
		}
	}
}

// agreed returns what two hosts report about one member, or zero (unknown) if they disagree.
func agreed[T comparable](a, b T) T {
	if a != b {
		var unknown T
		return unknown
	}
	return a
}

// reportedLearner returns the limit on learners that hosts report for a permanent learner: -1 if the limit is unknown,
// 0 if no host reports this member as a permanent learner.
func reportedLearner(v *policy.View, member uint64) int {
	for _, h := range v.Hosts {
		for _, s := range h.Sees {
			if uint64(s.MemberID) == member && s.Learner != 0 {
				return s.Learner
			}
		}
	}
	return 0
}

// contradicts reports whether the data directory is known not to belong to the member with this ID. Then that member is
// not caught up.
func contradicts(d policy.Data, id uint64) bool {
	switch d.State {
	case policy.DataUnknown, policy.DataUnreadable:
		return false
	case policy.DataMember:
		return d.MemberID != id
	}
	return true
}
