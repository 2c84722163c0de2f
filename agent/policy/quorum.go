// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
)

// All quorum arithmetic is in this file. A live voter is one that has answered the last linearizable read.

// Quorum returns the number of voters that must agree: more than half.
func Quorum(voters int) int { return voters/2 + 1 }

// Tolerance returns the fault tolerance: how many more voters may fail before the quorum is lost. It is negative
// without a quorum.
func Tolerance(voters, live int) int { return live - Quorum(voters) }

// voters returns the voting members.
func (c Cluster) voters() iter.Seq[Member] { return c.members(false) }

// learners returns the members that do not vote.
func (c Cluster) learners() iter.Seq[Member] { return c.members(true) }

func (c Cluster) members(learner bool) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for i := range c.Members {
			if c.Members[i].Learner == learner && !yield(c.Members[i]) {
				return
			}
		}
	}
}

// Counts returns the number of voters and how many of them are live.
func (c Cluster) Counts() (voters, live int) {
	for i := range c.Members {
		switch m := &c.Members[i]; {
		case m.Learner:
		case m.Live:
			voters, live = voters+1, live+1
		default:
			voters++
		}
	}
	return voters, live
}

// learning returns the number of learners that are not permanent.
func (c Cluster) learning() int {
	n := 0
	for range c.passing() {
		n++
	}
	return n
}

// Standbys returns the number of standbys: learners that have started, are not joining and are not permanent.
func Standbys(v View) int {
	n := 0
	for m := range v.Cluster.passing() {
		joining := v.Op.joins() && !m.Standby && (v.Op.MemberID == m.ID || v.Op.PeerURL == m.PeerURL)
		if m.Name != "" && !joining {
			n++
		}
	}
	return n
}

// mayChange reports whether a voluntary membership change is allowed: every voter must be live. While a voter is down,
// a change could leave no fault tolerance, or make the quorum depend on that voter.
func mayChange(voters, live int) bool { return voters > 0 && live == voters }

// mayStop reports whether one of the voters may be taken down temporarily. proven is the number of other voters that
// are known to be live and healthy now. All other voters must be, so that they still have a quorum. Two voters tolerate
// no failure, and an even number tolerates only as many failures as the odd number below it, so none of an even number
// of voters is taken down.
func mayStop(voters, proven int) bool {
	return voters >= 3 && voters%2 == 1 && proven == voters-1
}

// outagePastWork reports whether voters besides the one that is down on request have failed, so that no fault tolerance
// is left. live is the number of live voters. With 3 voters, the work alone leaves a tolerance of 0, and one more
// failure loses the quorum: no linearizable read can then confirm the count, and the host uses NoQuorumWithout instead.
// With 5 voters, one more failure leaves a tolerance of 0. A count below a quorum cannot be right after a linearizable
// read: the host that counted does not reach all members.
func outagePastWork(voters, live int) bool {
	return live < voters-1 && Tolerance(voters, live) == 0
}

// NoQuorumWithout reports whether it is certain on a host whose voter is down that the others have no quorum.
// leaderless is the number of other voters that answer but have no leader; the remaining ones must be too few for a
// quorum. A few leaderless voters alone prove nothing: they may be cut off from a leader that the others follow.
func NoQuorumWithout(voters, leaderless int) bool {
	return leaderless > 0 && voters-1-leaderless < Quorum(voters)
}

// mayRemove reports whether a voter may be removed for good. others is the number of live voters among the remaining
// ones; they must be a quorum of the remaining voters. Removing a live voter can lower the fault tolerance, so all
// others must then be live.
func mayRemove(voters, others int, live bool) bool {
	left := voters - 1
	if live {
		return left > 0 && others == left
	}
	return left > 0 && others >= Quorum(left)
}

// mayReplaceDead reports whether a voter that is down may be removed and replaced. proven is the number of other voters
// that are known to be live and healthy now. All voters that are not down must be live and healthy, and they must be a
// quorum even before the change.
func mayReplaceDead(voters, down, proven int) bool {
	return down > 0 && proven == voters-down && proven >= Quorum(voters)
}

// mayRemoveSurplus reports whether the only voter that is down may be removed when there is a surplus voter. Of the
// other voters, proven are known to be live and healthy now, and unknown are live with unknown health. Because voters
// of unknown health may turn out to be unhealthy, the proven ones alone must be a quorum of the remaining voters.
func mayRemoveSurplus(voters, down, proven, unknown int) bool {
	return down == 1 && proven+unknown == voters-1 && proven >= Quorum(voters-1)
}

// mayJoinWithSlow reports whether a host may become a voter while the voter it replaces is not live and is removed only
// afterwards. All other voters must be live. They must be a quorum now and, together with the new voter, a quorum
// of the larger cluster.
func mayJoinWithSlow(voters, live int) bool {
	return live == voters-1 && live >= Quorum(voters) && live+1 >= Quorum(voters+1)
}

// keepsOdd reports whether a voter may be replaced, given the size of the cluster. A replacement keeps the number of
// voters, so an even number is no worse than before. With more voters than the size, the voter is removed without a
// replacement, which is allowed only if that makes the number odd, or if an operator has made the cluster smaller. In
// the latter case the next voter leaves right afterwards.
func keepsOdd(voters int, size Target) bool {
	return voters <= size.Voters || voters%2 == 0 || size.Resized
}

// mayJoinAsExtra reports whether a host may vote in addition to the voter it replaces until that voter is removed,
// given the cluster's size, target. An even number means that a voter is missing and joins first, or that an earlier
// replaced voter has not been removed yet.
func mayJoinAsExtra(voters, target int) bool { return voters%2 == 1 && voters <= target }

// isSurplus reports whether a dead or unhealthy voter may be removed without a replacement: there are more voters than
// the size of the cluster, and either their number is even, because a replaced voter has not been removed yet, or an
// operator has made the cluster smaller.
func isSurplus(voters int, size Target) bool {
	return voters > size.Voters && (voters%2 == 0 || size.Resized)
}

// mayLeave reports whether a live voter may leave for good because an operator has made the cluster smaller or has
// retired its host. proven is the number of other voters that are known to be live and healthy now: all of them must
// be.
func mayLeave(voters, proven int, size Target) bool {
	return size.Resized && voters > size.Voters && size.Voters > 0 && proven == voters-1
}

// spareText returns why none of that many voters may be taken down.
func spareText(voters int) string {
	switch voters {
	case 1:
		return "there is only one voter: without it there is no cluster"
	case 2:
		return "two voters tolerate no failure"
	}
	return fmt.Sprintf("%d is an even number of voters: wait until it is odd", voters)
}

// mayGrow reports whether a voter may be added. target is the cluster's size, and ready the number of hosts that could
// become voters, including this one. An even number of voters is worse than the odd number below it, because its quorum
// is larger at the same fault tolerance. Therefore it is allowed only if one more host is ready to make the number odd
// again, or if one of the voters is retiring: it leaves next.
func mayGrow(voters, retiring, target, ready int) bool {
	if voters-retiring >= target {
		return false
	}
	if retiring > 0 {
		return true
	}
	next := voters + 1
	return next%2 == 1 || ready >= 2
}
