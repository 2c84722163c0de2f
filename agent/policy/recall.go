// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// A host that is down on request returns by itself if the cluster needs its vote, which means that other voters have
// failed as well and no fault tolerance or no quorum is left (see outagePastWork). It needs neither the lock nor a
// write to etcd for that, because a returning member does not lower the fault tolerance. It records on its own disk
// that the work is called off; from then on, the request is over, and the ordinary rules bring the host back. Only two
// kinds of work are called off: interruptible maintenance, and a reboot by the agent, unless the agent has requested
// the reboot within the last TransferTimeout. A host that reaches no member calls off nothing, because its own network
// may have failed.

// callsOff returns why the work for which this host is down is called off, and whether it is.
func callsOff(v View) (string, bool) {
	if !mayCallOff(v) {
		return "", false
	}
	return neededBack(v)
}

// mayCallOff reports whether the work may be called off at all. A reboot that was requested may take effect at any
// moment, and an external system that reboots the machine already has the permission.
func mayCallOff(v View) bool {
	a := v.Asked
	switch {
	case a == nil || a.Over || v.Recovery != nil || v.Self.Mode != Manage || !v.Self.Drives || v.Self.Conflict != "":
		return false
	case a.Work.info().rebootEnds:
		return !a.External && a.RebootFor > v.Limits.TransferTimeout
	}
	return a.Interruptible && a.Work.info().operatorEnds
}

// neededBack returns why the cluster needs the vote of this host, whose etcd this agent has stopped for a request, and
// whether it does. A state counts only if it has lasted for the settle time, because an election or a restart of etcd
// takes seconds. The data directory must hold the member's data: without it, the host has no vote.
func neededBack(v View) (string, bool) {
	if v.Asked == nil || !v.Asked.Stopped || unitRuns(v) || v.Data.State != DataMember || v.foreign() {
		return "", false
	}
	if !v.Cluster.Reachable {
		known := v.Cluster.ExpectedID == v.Data.ClusterID && v.Self.MemberID == v.Data.MemberID
		if !known || v.Cluster.Leaderless == "" || v.Cluster.LeaderlessFor < v.Limits.Settle {
			return "", false
		}
		return "no quorum: " + v.Cluster.Leaderless, true
	}
	m, listed := v.member()
	voters, live := v.Cluster.Counts()
	if !v.Cluster.Fresh || !listed || m.Learner || v.Data.MemberID != m.ID || !outagePastWork(voters, live) {
		return "", false
	}
	var down []string
	for other := range v.Cluster.voters() {
		if !other.Live && other.ID != m.ID {
			down = append(down, other.label())
			if other.DownFor < v.Limits.Settle || v.isReachedElsewhere(other) {
				return "", false
			}
		}
	}
	return "fault tolerance 0: " + strings.TrimPrefix(unanswered(down), "voter "), true
}

// isReachedElsewhere reports whether the host of another live voter reports that it reaches a member. In that case,
// this host's own network may be the cause.
func (v View) isReachedElsewhere(m Member) bool {
	for voter := range v.Cluster.voters() {
		h, present := v.hostOf(voter)
		if !present || h.Own || !voter.Live || voter.ID == m.ID {
			continue
		}
		if report, says := h.reportOn(m.ID); says && !report.Lost() && !report.Unsure() {
			return true
		}
	}
	return false
}

// recalled reports whether the work on this host was called off, so that the host comes back.
func recalled(v View) (string, bool) {
	if v.Asked == nil || v.Asked.Recalled == "" {
		return "", false
	}
	return v.Asked.Recalled, true
}

// stayText describes the work of a host that stays down, and adds a warning if the cluster needs the host.
func stayText(v View) string {
	text := "by " + v.Asked.By + ": " + v.Asked.Reason
	if why, needed := neededBack(v); needed && v.Asked.Work.info().operatorEnds && !v.Asked.Interruptible {
		text += ". The cluster needs this host (" + why + "), but its maintenance is not interruptible: end it as " +
			"soon as possible"
	}
	return text
}
