// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/record"
)

// A readdress replaces the URLs of one member. etcd with data ignores the peer URL in its environment, so the member
// list is updated first. Then its environment is written, etcd is stopped, and it starts with the new URLs. One wrong
// peer URL is harmless, because either side of a connection may establish it, but two members with wrong ones cannot
// reach each other. Therefore the operation, which excludes every other operation, ends only after the hosts of the
// other members have reported that their etcd is connected to the new URL (urlUnverified has the exceptions), or after
// the previous URL is registered again (restoreURL). After the member list has been updated, an operator can no longer
// stop the operation by ending the request. The way back is a second readdress, to the old URL.

// RecognizedMember returns the ID of the member that this host's data belongs to, in the cluster with this ID; 0 if
// there is none or it is unknown. While the data has not been read, the member recorded on this host's disk counts.
func RecognizedMember(d Data, self Self, cluster uint64) uint64 {
	switch {
	case cluster == 0:
	case d.State == DataMember && d.ClusterID == cluster:
		return d.MemberID
	case d.State == DataUnknown && self.ClusterID == cluster:
		return self.MemberID
	}
	return 0
}

// IsDefaultMember reports whether a member is the first one of a cluster that etcd has created by default, and still
// has the default peer URL. Such a member belongs to no configured host.
func IsDefaultMember(member, cluster uint64, peerURL string) bool {
	return hasDefaultData(member, cluster) && peerURL == defaultPeerURL
}

// newURLConflict returns why the configured peer URL cannot replace the registered one, or that no operator has
// requested the change; empty if the change may be made or there is none.
func newURLConflict(v View) string {
	next := v.Self.NewPeerURL
	if next == "" {
		return ""
	}
	for _, m := range v.Cluster.Members {
		if m.PeerURL == next {
			return "etcd.peerURL is " + next + ", which is the peer URL of member " + m.label()
		}
	}
	if readdresses(v) {
		return ""
	}
	return "etcd.peerURL is " + next + ", but this host's member is registered with " + v.Self.PeerURL +
		" → quorumctl readdress " + v.Self.Name + " --reason '<why>'"
}

// awaitsReaddress reports whether this host's only conflict is a configured peer URL that its member does not have yet.
func awaitsReaddress(v View) bool {
	return v.Self.NewPeerURL != "" && v.Self.Conflict != "" && v.Self.Conflict == newURLConflict(v)
}

// identityConflict returns this host's conflict, unless it only awaits a readdress. Until then, its member serves with
// the registered URL, so the host may transfer leadership, remove other members and end other hosts' operations.
func identityConflict(v View) (string, bool) {
	if awaitsReaddress(v) {
		return "", false
	}
	return hostConflict(v)
}

// continuesAtOldURL reports whether this host only awaits a readdress, and the host's own operation is for other work,
// such as maintenance, or removes a voter without a replacement. The operation continues, because only its host ends
// it. etcd then starts with its previous environment, which has the registered URL.
func continuesAtOldURL(v View) bool {
	other := v.owns(KindCycle) && v.Op.Work != WorkReaddress || v.owns(KindReplace) && v.Op.Target != RoleVoter
	return other && awaitsReaddress(v)
}

// clientURLDiffers reports whether the configured client URL waits for a readdress. It blocks nothing: clients use the
// registered one until then.
func clientURLDiffers(v View) (string, bool) {
	if v.Self.NewClientURL == "" || !v.Cluster.Reachable || v.foreign() || readdresses(v) {
		return "", false
	}
	return "etcd.clientURL is " + v.Self.NewClientURL + ", but this host's member is registered with " +
		v.Self.ClientURL + " → quorumctl readdress " + v.Self.Name + " --reason '<why>'", true
}

// againstReaddress returns why a rollout may not readdress a host, or nil.
func againstReaddress(all []RolloutHost, h RolloutHost, w Work) *Refusal {
	if w != WorkReaddress {
		return nil
	}
	if refusal := againstScheme(all, h); refusal != nil || h.NewPeerURL == "" {
		return refusal
	}
	for _, o := range all {
		if o.ID != h.ID && (o.PeerURL == h.NewPeerURL || o.NewPeerURL == h.NewPeerURL) {
			return conflicts(HostConflict, h.Name+" and "+o.Name+" would have the same peer URL, "+h.NewPeerURL,
				"give "+h.Name+" a URL of its own in etcd.peerURL, and reload quorumd there")
		}
	}
	return nil
}

func scheme(url string) string {
	before, _, _ := strings.Cut(url, ":")
	return before
}

// readdresses reports whether an operator has requested the readdress of this host, directly or by a rollout that is
// running and has yet to reach it.
func readdresses(v View) bool {
	if v.Asked != nil && v.Asked.Work == WorkReaddress {
		return true
	}
	r := v.Rollout
	return r != nil && r.Runs && r.Work == WorkReaddress && slices.Contains(r.Waiting, v.Self.ID)
}

// afterUpdates delays the end of this host's operation while etcd may still apply an update of the member list that
// this agent has sent. Otherwise the new URL could be registered after the operation, and would stay unverified.
// etcd applies an update within the lock's TTL or never.
func afterUpdates(v View, d Decision) Decision {
	if d.Step.Kind != StepEndOp || v.Op.Work != WorkReaddress || !v.UpdatePending {
		return d
	}
	return wait(Returning, "an update of the member list may be pending in etcd; it takes effect within %s or never",
		durationfmt.Text(v.Limits.LockTTL))
}

// recordsOtherWork reports whether either the operation's record or this host's request is for a readdress, but not
// both. The record was then written late, for an earlier request. The hosts of other members would not report on the
// connections that a readdress needs, so the operation ends before anything is done, and another one begins.
func recordsOtherWork(v View) (why string, other bool) {
	differs := (v.Op.Work == WorkReaddress) != (v.Asked.Work == WorkReaddress)
	other = v.Op.Phase == PhaseBegun && differs && !urlUpdated(v)
	return fmt.Sprintf("it was recorded for an earlier request (%s), and the current one is for %s", v.Op.Work,
		v.Asked.Work), other
}

// back reports whether, by its phase, the operation has started etcd again on the host that it took down.
func (op *Op) back() bool { return op.Phase == PhaseBack || op.Phase == PhaseVerify }

// urlUpdated reports whether this host's operation may have updated the member list. After an update, the member's peer
// URL stays unverified until etcd has started with it, even if a second update has restored the original URL. No update
// is sent before this host's disk records the operation.
func urlUpdated(v View) bool {
	seen := v.Asked == nil || v.Asked.Seen
	again := seen && (v.Op.Restarted || v.Asked != nil && v.Asked.Stopped) && !v.Op.back()
	return v.Op.Work == WorkReaddress && (again || v.Op.PeerURL != "" && v.Op.PeerURL != v.Self.PeerURL)
}

// readdressAgain reports whether an unfinished readdress must apply this host's configuration again. There are two
// cases. Either the configured peer URL differs from the registered one again, because an operator has changed it. Or
// the operation's record was last written more than ReturnMax ago, the new URL is still unverified, and this agent
// process has not written the environment with which etcd should start now, for example because quorumd was restarted:
// the configuration may have changed meanwhile. The result is false if the request ended before this host's disk
// recorded the operation, because the member list was then not updated.
func readdressAgain(v View) bool {
	inForce := v.Asked != nil && (v.Asked.Seen || !v.Asked.Over)
	return v.Op.Work == WorkReaddress && inForce && (v.Self.NewPeerURL != "" ||
		!v.Unit.EnvReady && v.Op.WrittenFor > v.Limits.ReturnMax && urlUnverified(v) != "")
}

// changeAgain continues an unverified readdress with the changed configuration. If the other voters tolerate it, etcd
// is restarted. While they do not, as when one of them is down, only the member list is updated: that stops no etcd,
// and this member's URL remains the only unverified one. That update suffices if etcd already listens at the new URL.
// Otherwise etcd is restarted once the other voters tolerate it.
func changeAgain(v View, m Member) (Decision, bool) {
	if !readdressAgain(v) {
		return Decision{}, false
	}
	r, atRisk := vetoed(v, vetoQuorumAtRisk)
	switch {
	case !atRisk:
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseReady, MemberID: m.ID, Why: "this host's configuration has changed",
		}), true
	case !mustUpdate(v):
		return Decision{}, false
	case v.Op.Phase == PhaseVerify: // the other hosts' reports are about the previous URL
		return do(Step{
			Kind: StepSetPhase, Phase: PhaseBack, MemberID: m.ID,
			Why: "this host's peer URL has changed, but etcd is not restarted while " + r.Text,
		}), true
	}
	return updateMember(v, m), true
}

// restartMissing returns, as an addition to a reason, that etcd may have to be restarted before other members can
// connect to the new URL, but that this number of voters never tolerates a restart; empty if not.
func restartMissing(v View) string {
	voters, _ := v.Cluster.Counts()
	if !readdressAgain(v) || v.Self.NewPeerURL != "" || mayStop(voters, voters-1) {
		return ""
	}
	return fmt.Sprintf(". etcd may still listen at its previous peer URL, and quorumd does not restart it, because %d "+
		"voters never tolerate that → set etcd.peerURL to the URL at which etcd listens, and reload quorumd", voters)
}

// connectedBefore reports whether the etcd of this host, whose peer URL is about to be updated, is connected to every
// other voter. It returns true if no URL is to be updated. Like the reports of the other hosts, this rules out that
// another member's URL is unverified, for example because an operator has released that member's readdress. After the
// update, the connections no longer count: a voter that restarts cannot connect to this host, so the etcd of this host
// may count that voter as inactive although it is connected.
func connectedBefore(v View, m Member) bool {
	h, present := v.hostOf(m)
	return v.Asked.Work != WorkReaddress || v.Self.NewPeerURL == "" || urlUpdated(v) || present && h.Answered
}

// connectionsAwaited reports whether another host's readdress waits for this host's report on its etcd's connections,
// and has waited for less than TransferTimeout. This host then observes more often. The report needs readings newer
// than the request, which take several rounds. At the normal interval, the other host would request new reports each
// time before this one arrived.
func connectionsAwaited(v View) bool {
	own := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.Own })
	return MustPublish(v, roleOf(v)) && AsksConnections(v.Op.Kind, v.Op.Work, v.Op.Phase) && v.Pause == nil &&
		own >= 0 && !v.Hosts[own].Answered && v.Op.WrittenFor < v.Limits.TransferTimeout
}

// updateMember registers the configured peer URL for this host's member.
func updateMember(v View, m Member) Decision {
	return do(Step{
		Kind: StepUpdateMember, MemberID: m.ID, PeerURL: v.Self.NewPeerURL,
		Why: "from " + v.Self.PeerURL + " to " + v.Self.NewPeerURL,
	})
}

// restoreURL registers the previous URL again after a lasting condition, such as another voter that is down, has
// returned the operation to its first phase. It does so only if etcd was not restarted, so that it still listens at
// that URL, and if its environment was not written. Then the operation ends, so that a dead voter can be replaced,
// and the request waits. The operation takes no other step first, because a late update could undo a later one.
func restoreURL(v View, m Member) (Decision, bool) {
	a, first := v.Asked, v.Op.PeerURL
	taken := slices.ContainsFunc(v.Cluster.Members, func(o Member) bool { return o.PeerURL == first })
	unused := !a.Stopped && !v.Op.Restarted && v.Op.SameBoot && !v.Unit.EnvBegun && v.Unit.State == UnitActive
	if a.Work != WorkReaddress || v.Op.Phase != PhaseBegun || !unused || !urlUpdated(v) || taken {
		return Decision{}, false
	}
	return do(Step{
		Kind: StepUpdateMember, MemberID: m.ID, PeerURL: first,
		Why: "from " + v.Self.PeerURL + " back to " + first + ", because etcd cannot be restarted safely now",
	}), true
}

// readdress prepares the next start of this host's etcd, which is stopped.
func readdress(v View) Decision {
	if d, ends := nothingToDo(v); ends {
		return d
	}
	if m, _ := v.member(); mustUpdate(v) {
		return updateMember(v, m)
	}
	if r, holds := vetoed(v, vetoLowersLimit); holds { // etcd would not start with this environment
		return Decision{Reasons: []Reason{r}}
	}
	return do(Step{Kind: StepWriteEnv})
}

// mustUpdate reports whether the member list must have the configured peer URL before etcd starts again. A change to
// https for which certificates are missing, made while etcd is stopped, does not keep etcd down. Such a change waits
// until etcd runs.
func mustUpdate(v View) bool {
	_, missing := peerTLSMissing(v)
	return v.Self.NewPeerURL != "" && !missing
}

// urlUnverified returns which other members are not known to be connected to the new peer URL of this host's
// member; empty if all are, or if the operation is not a readdress. A learner that does not answer is ignored. So
// is a voter that is down: its own URL has not changed, so it can connect to the new one when it returns, even to an
// https one, because its process had a certificate before this operation began.
func urlUnverified(v View) string {
	if v.Op.Work != WorkReaddress {
		return ""
	}
	var silent, absent []string
	why := ""
	for _, m := range v.Cluster.Members {
		if m.PeerURL == v.Self.PeerURL || !m.Live && m.Learner || downForAll(v, m) {
			continue
		}
		switch h, present := v.hostOf(m); {
		case !present:
			absent = append(absent, m.label())
		case !h.Answered:
			silent, why = append(silent, h.Name), cmp.Or(why, unreachedText(h))
		}
	}
	switch {
	case len(silent) > 0:
		return "waiting for " + joinNames(silent) + " to report a connection to " + v.Self.PeerURL +
			" and that both ports of this host are open" + why
	case len(absent) > 0:
		return "no quorumd reports a connection of " + joinNames(absent) + " to " + v.Self.PeerURL
	}
	return ""
}

// downForAll reports whether a voter has not answered this host for longer than ReturnMax, and no other voter's host
// reports that the voter answers: only this host may be cut off from it. A voter that hangs accepts connections, but
// does not answer.
func downForAll(v View, m Member) bool {
	reached := func(h Host) bool {
		s, reports := h.reportOn(m.ID)
		answers := s.Peer == record.PortAnswers || s.Client == record.PortAnswers || s.Link == record.LinkUp
		return reports && !h.Own && h.Role == RoleVoter && !s.Lost() && answers
	}
	return !m.Live && m.DownFor > v.Limits.ReturnMax && !slices.ContainsFunc(v.Hosts, reached)
}

// unreachedText returns, as text, what a host reports about the members that it does not reach; empty if nothing.
func unreachedText(h Host) string {
	if h.Unreached == "" {
		return ""
	}
	return "; " + h.Name + " reports: " + h.Unreached
}
