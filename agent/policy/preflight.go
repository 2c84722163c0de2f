// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// vetoes returns the conditions that keep a host from joining, in order of precedence: the first that applies is the
// most important reason.
func vetoes() []veto {
	return slices.Concat([]veto{
		vetoNoQuorum(),
		vetoUnreachable(),
		vetoIDMismatch(),
		vetoHostConflict(),
		vetoMaintenanceOverdue(),
		vetoInMaintenance(),
		vetoAwaitsTurn(),
		vetoCorrupt(),
		vetoNoSpace(),
		// This is one of the host's own vetoes although it is about a voter: if only this host cannot reach the voter,
		// other hosts may proceed.
		vetoVoterNotLive(),
		vetoRetired(),
		vetoTargetMet(),
		vetoLearnerLast(),
	}, hostVetoes(), []veto{
		vetoOperationInFlight(),
		vetoLockHeld(),
		vetoCommonCause(),
		vetoLearnerPresent(),
		vetoLearnerVersion(),
		vetoLearnerLimit(),
		vetoSettling(),
		vetoLowerRanked(),
		vetoEvenVoters(),
	})
}

// hostVetoes returns the conditions that keep a host from becoming a member in any role.
func hostVetoes() []veto {
	return []veto{
		vetoVersionUnknown(), // the versions are checked before the qualifying run, which takes a while
		vetoVersionUnsafe(),
		vetoVersionIncompatible(),
		vetoVersionUntested(),
		vetoDowngradeEnabled(),
		vetoHealthUnknown(),
		vetoNotQualified(),
		vetoHealthBad(),
		vetoClockUnknown(),
		vetoClockSkew(),
		vetoSpaceLow(),
		vetoUnitUnusable(),
		vetoDefaultCluster(),
		vetoUnitBusy(),
		vetoDataUnusable(),
		vetoEjected(),
		vetoBackingOff(),
		vetoStepStuck(),
	}
}

// preflight returns the reasons why this host may not begin a join now.
func preflight(v View) []Reason { return against(v, vetoes()) }

// against returns the reasons of the vetoes in list that apply, up to the first that means that this host's cluster
// does not answer.
func against(v View, list []veto) []Reason {
	var out []Reason
	for _, veto := range list {
		if r, holds := veto.reason(v); holds {
			out = append(out, r)
			if veto.code == NoQuorum || veto.code == ClusterUnreachable || veto.code == ClusterIDMismatch {
				break // the remaining vetoes depend on the cluster's answer
			}
		}
	}
	return out
}

// waiting returns the first of this host's own reasons not to act next, or an empty code if the host is ready. A voter
// has already joined, so only an identity conflict or its own request can make it wait.
func waiting(v View) ReasonCode {
	voter := roleOf(v) == RoleVoter
	for _, veto := range vetoes() {
		if voter && !slices.Contains([]ReasonCode{HostConflict, MaintenanceOverdue, InMaintenance, CycleQueued},
			veto.code) {
			continue
		}
		// A voter that does not answer must not block its own replacement. A resting host counts as ready even while a
		// voter does not answer.
		if !veto.own || veto.code == VoterNotLive && (v.Resting || v.awaitsRepair()) {
			continue
		}
		if r, holds := veto.reason(v); holds {
			return r.Code
		}
	}
	return ""
}

func unreachable(v View) (string, bool) {
	return v.unreachable(), !v.Cluster.Reachable && !v.knowsCluster()
}

func noQuorum(v View) (string, bool) {
	return v.unreachable(), !v.Cluster.Reachable && v.knowsCluster()
}

// knowsCluster reports whether this host has evidence of a cluster, even if that cluster does not answer. Such a host
// must not create a new one.
func (v View) knowsCluster() bool {
	return v.Cluster.Listed || v.Cluster.ExpectedID != 0 || v.Bootstrap.Done || v.Bootstrap.LastCluster != 0 ||
		v.Data.State == DataMember
}

// waitForCluster returns the decision to wait for a cluster that does not answer.
func waitForCluster(v View) Decision {
	r, _ := vetoed(v, vetoNoQuorum, vetoUnreachable)
	return Decision{Reasons: []Reason{r}}
}

// unreachable returns why the cluster cannot be reached.
func (v View) unreachable() string {
	if v.Cluster.Error == "" {
		return "no voter has answered yet"
	}
	return v.Cluster.Error
}

// Foreign reports whether the endpoints belong to a cluster other than this host's.
func (c Cluster) Foreign() bool { return c.Reachable && c.ExpectedID != 0 && c.ExpectedID != c.ID }

func (v View) foreign() bool { return v.Cluster.Foreign() }

// inMaintenance reports whether the host's operation has begun, even if no voter answers or the operation was released.
func inMaintenance(v View) (string, bool) {
	a := v.Asked
	if a == nil || !v.owns(KindCycle) && !a.Stopped && !a.Over && !a.Released && !a.RecordDeleted {
		return "", false
	}
	return fmt.Sprintf("%s was requested by %s: %s", a.Work, a.By, a.Reason), true
}

// awaitsTurn reports whether this host's requested operation is queued. Until it begins, the host does not join.
func awaitsTurn(v View) (string, bool) {
	if _, in := inMaintenance(v); in || v.Asked == nil {
		return "", false
	}
	return fmt.Sprintf("queued: %s was requested by %s: %s", v.Asked.Work, v.Asked.By, v.Asked.Reason),
		true
}

// maintenanceOverdue reports whether the operation has exceeded its announced duration. This condition has its own code
// so that other hosts can report it.
func maintenanceOverdue(v View) (string, bool) {
	text, asked := inMaintenance(v)
	return text, asked && v.Asked.Overdue
}

func hostConflict(v View) (string, bool) { return v.Self.Conflict, v.Self.Conflict != "" }

func idMismatch(v View) (string, bool) {
	c := v.Cluster
	if !v.foreign() {
		return "", false
	}
	return fmt.Sprintf("the endpoints belong to cluster %x, but this host belongs to %x", c.ID, c.ExpectedID), true
}

// joinTarget returns the role in which this host would join, and whether the cluster has room for it in that role.
func joinTarget(v View) (Role, bool) {
	voters, _ := v.Cluster.Counts()
	role := roleOf(v)
	switch {
	case role == RoleVoter:
		return "", false
	case v.Self.Learner:
		return RoleLearner, role != RoleLearner
	case voters-v.retiring() < v.Target.Voters:
		return RoleVoter, true
	case role == RoleSpare && v.Cluster.learning() < v.Target.Standbys:
		return RoleStandby, true
	}
	return "", false
}

// PlaceFree reports whether this host is not a voter and the cluster needs one more member in a role that this host
// could take.
func PlaceFree(v View) bool {
	_, place := joinTarget(v)
	return v.Cluster.Reachable && place
}

func targetMet(v View) (string, bool) {
	if _, place := joinTarget(v); place || !v.Cluster.Reachable {
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	return fmt.Sprintf("%d of %d voters and %d of %d standbys", voters, v.Target.Voters, Standbys(v),
		v.Target.Standbys), true
}

func healthUnknown(v View) (string, bool) {
	if v.Health.State != health.Unknown {
		return "", false
	}
	return v.Health.Text, true
}

// notQualified reports whether this host still has to pass a qualifying run before it becomes a member. A learner that
// has lost its qualification, for example after a reboot, cannot repeat the run, because a member's disk must not be
// written to in bursts. It passed a run before, so its current health state decides whether it may vote.
func notQualified(v View) (string, bool) {
	if v.Health.Qualified || v.Health.State == health.Unknown || v.isLearner() {
		return "", false
	}
	return v.Health.Text, true
}

// isLearner reports whether this host holds a learner that has started, or is joining as one.
func (v View) isLearner() bool {
	_, listed := v.member()
	role := roleOf(v)
	return role == RoleStandby || role == RoleLearner || (role == RoleJoining && listed)
}

func healthBad(v View) (string, bool) {
	if _, reported := notQualified(v); reported || Permits(v.Health.State).Join || !v.Health.blocks(health.Joins) {
		return "", false
	}
	return v.Health.Text, true
}

func spaceLow(v View) (string, bool) {
	need := 2 * v.Cluster.DBSize
	switch {
	case v.isLearner() || roleOf(v) == RoleJoining: // this host already has the database, or is receiving it
		return "", false
	case !v.Data.FreeKnown:
		return "the free space is unknown", true
	case v.Data.Free < need:
		return fmt.Sprintf("%d MiB are free, but %d MiB are needed", v.Data.Free>>20, need>>20), true
	}
	return "", false
}

// unitUnusable also reports an etcd that is managed externally, which has its own code (see unknownVetoes).
func unitUnusable(v View) (string, bool) {
	switch {
	case v.Unit.State == UnitUnknown:
		return "the state of the unit is unknown: " + v.Unit.Detail, true
	case !v.Self.Drives:
		return v.externalReason().Text, true
	case v.Unit.State == UnitMissing:
		return v.Unit.Detail, true
	}
	return "", false
}

func unitBusy(v View) (string, bool) {
	switch v.Unit.State {
	case UnitActive, UnitActivating, UnitDeactivating:
		if roleOf(v) == RoleSpare {
			return fmt.Sprintf("the unit is %s", v.Unit.State), true
		}
	}
	return "", false
}

func dataUnusable(v View) (string, bool) {
	switch {
	case v.Data.State == DataUnknown:
		return v.Data.unread(), true
	case v.Data.State == DataUnreadable:
		return v.Data.Detail, true
	case v.Data.State == DataMember && v.Cluster.Reachable && v.Data.ClusterID != v.Cluster.ID:
		return fmt.Sprintf("the data directory belongs to cluster %x", v.Data.ClusterID), true
	}
	return "", false
}

func backingOff(v View) (string, bool) {
	if v.Backoff <= 0 {
		return "", false
	}
	return fmt.Sprintf("the next attempt is in %s", durationfmt.Seconds(v.Backoff)), true
}

func stepStuck(v View) (string, bool) { return v.Stuck, v.Stuck != "" }

func operationInFlight(v View) (string, bool) {
	if v.Op == nil || v.Op.Host == v.Self.ID {
		h, found := unrecordedOperation(v)
		return h.Name + " reports an operation of its own, but etcd has no record of it", found
	}
	text := fmt.Sprintf("%s is in phase %s", v.Op.label(), v.Op.Phase)
	if v.Op.Overdue {
		text += ", and has exceeded its announced duration"
	}
	return text, true
}

func lockHeld(v View) (string, bool) {
	switch {
	case !v.Lock.Known:
		return "the lock holder is unknown", true
	case v.Lock.Held && !v.Lock.Mine:
		return "held by " + v.Lock.Holder, true
	}
	return "", false
}

func commonCause(v View) (string, bool) {
	if v.owns(KindReplace) { // a replacement may continue if all voters that are down are in one failure domain
		return severalDown(v)
	}
	n := 0
	for _, h := range v.Hosts {
		if Unhealthy(h.Health) && (h.Role == RoleVoter || h.Role == RoleStandby) {
			n++
		}
	}
	if n < 2 {
		return "", false
	}
	return fmt.Sprintf("%d members are unhealthy at the same time", n), true
}

func voterNotLive(v View) (string, bool) {
	if mayChange(v.Cluster.Counts()) {
		return "", false
	}
	if v.owns(KindReplace) && v.allDead() { // dead voters in one failure domain are replaced one after another
		return "", false
	}
	if v.owns(KindReplace) && v.onlySlowIsDown() {
		return "", false
	}
	if text, down := voterDown(v); down {
		return text, true
	}
	return "there is no voter", true
}

func (m Member) label() string {
	if m.Name != "" {
		return m.Name
	}
	return m.PeerURL
}

func learnerPresent(v View) (string, bool) {
	m, blocked := v.otherLearner(v.Self.PeerURL, v.Self.Learner)
	return m.label() + " is a learner", blocked
}

// otherLearner returns the learner that keeps the host with that peer URL from joining, and whether there is one.
// permanent means that the host is configured as a permanent learner.
func (v View) otherLearner(peerURL string, permanent bool) (Member, bool) {
	standby := func(m Member) bool { return m.Standby && m.PeerURL == peerURL }
	promotes := slices.ContainsFunc(v.Cluster.Members, standby) // the host promotes its standby and adds no learner
	for m := range v.Cluster.passing() {
		if m.PeerURL != peerURL && (!m.Standby || !promotes && !permanent) { // a standby blocks no permanent learner
			return m, true
		}
	}
	return Member{}, false
}

// settlingFor returns for how much longer no operation may begin after a membership change or an operation.
func settlingFor(v View) time.Duration {
	return max(v.Limits.Settle-v.Cluster.StableFor, v.Limits.Cooldown-v.IdleFor)
}

func settling(v View) (string, bool) {
	if ended := v.Limits.Cooldown - v.IdleFor; ended > 0 && ended == settlingFor(v) {
		return fmt.Sprintf("%s of the cooldown of %s remain",
			durationfmt.Tenths(ended), durationfmt.Text(v.Limits.Cooldown)), true
	}
	return listUnsettled(v)
}

// selfReady reports whether this host counts as ready: it has no reason of its own to wait, or is already joining.
func selfReady(v View) bool { return roleOf(v) == RoleJoining || waiting(v) == "" }

func evenVoters(v View) (string, bool) {
	target, place := joinTarget(v)
	keeps := v.Op.joins() && v.Op.info().removes != nil && v.Op.Host == v.Self.ID // the number of voters stays the same
	if !place || target != RoleVoter || keeps {
		return "", false
	}
	voters, _ := v.Cluster.Counts()
	ready := len(candidates(v, target, selfReady(v)))
	if mayGrow(voters, v.retiring(), v.Target.Voters, ready) {
		return "", false
	}
	return fmt.Sprintf("the number of voters would rise from %d to %d, and no other host is ready to join after this "+
		"one", voters, voters+1), true
}
