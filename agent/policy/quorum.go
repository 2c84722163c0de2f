// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
)

// All quorum arithmetic is in this file. A live voter is one that answered a linearizable read in this round.

// Quorum returns the number of voters that must agree: more than half.
func Quorum(voters int) int { return voters/2 + 1 }

// Tolerance returns how many more voters may fail before the quorum is lost; it is negative once it is lost.
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

// learning returns the number of learners.
func (c Cluster) learning() int {
	voters, _ := c.Counts()
	return len(c.Members) - voters
}

// Standbys returns the number of learners that have joined, without those that are joining or have never started.
func Standbys(v View) int {
	n := 0
	for m := range v.Cluster.learners() {
		joining := v.Op.joins() && !m.Standby && (v.Op.MemberID == m.ID || v.Op.PeerURL == m.PeerURL)
		if m.Name != "" && !joining {
			n++
		}
	}
	return n
}

// mayChange reports whether the membership may be changed voluntarily: every voter must be live. A change while one is
// down leaves no fault tolerance, or makes the quorum depend on the voter that is down.
func mayChange(voters, live int) bool { return voters > 0 && live == voters }

// mayStop reports whether one of so many voters may be taken down for a while when proven of the others are known to be
// live and healthy now. All of them must be: the rest still has a quorum then. Two voters tolerate no failure, and an
// even number tolerates no more than the odd number below it: it occurs only while the cluster grows.
func mayStop(voters, proven int) bool {
	return voters >= 3 && voters%2 == 1 && proven == voters-1
}

// mayRemove reports whether one of so many voters may be removed for good when others of the rest are live. The rest
// must have a quorum. Removing a live voter lowers the fault tolerance, so all others must be up then.
func mayRemove(voters, others int, live bool) bool {
	left := voters - 1
	if live {
		return left > 0 && others == left
	}
	return left > 0 && others >= Quorum(left)
}

// mayReplaceDead reports whether one of so many voters that are down may be removed and replaced when proven of the
// others are known to be live and healthy now. All of them must be, and they must be a quorum even before the change.
func mayReplaceDead(voters, down, proven int) bool {
	return down > 0 && proven == voters-down && proven >= Quorum(voters)
}

// mayRemoveSurplus reports whether a voter that is down may be removed when there is one voter more than wanted, proven
// of the others are known to be live and healthy now, and untold are live with unknown health. Unhealthy ones do no
// harm here: the others are a quorum of what is left.
func mayRemoveSurplus(voters, down, proven, untold int) bool {
	return down == 1 && proven+untold == voters-1 && proven >= Quorum(voters-1)
}

// mayJoinWithSlow reports whether a host may become a voter in place of one that is not live and that is removed
// afterwards. All others must be live and a quorum, and together with that host a quorum of one voter more.
func mayJoinWithSlow(voters, live int) bool {
	return live == voters-1 && live >= Quorum(voters) && live+1 >= Quorum(voters+1)
}

// keepsOdd reports whether one of that many voters may be replaced if target are configured. A replacement keeps their
// number, even an even one: the dead voter counted before, too. With more voters than configured, no host replaces it,
// which is good only if that makes the number odd.
func keepsOdd(voters, target int) bool { return voters <= target || voters%2 == 0 }

// mayJoinAsExtra reports whether a host may vote in addition to the voter it replaces, until that one is removed, if
// there are that many voters and target are configured. With an even number, either a place is free and is filled
// first, or one was filled and the replaced voter is still there.
func mayJoinAsExtra(voters, target int) bool { return voters%2 == 1 && voters <= target }

// isOneTooMany reports whether one voter more than wanted makes the number even: a replaced voter has not been removed
// yet.
func isSurplus(voters, target int) bool { return voters%2 == 0 && voters > target }

// spareText explains why that many voters tolerate no failure.
func spareText(voters int) string {
	switch voters {
	case 1:
		return "it is the only voter: without it there is no cluster"
	case 2:
		return "two voters tolerate no failure"
	}
	return fmt.Sprintf("%d voters are an even number: wait until it is odd", voters)
}

// mayGrow reports whether one more voter may be made with that many voters, if target are configured and ready hosts
// could become voters, this one included. An even number is worse than staying: its quorum needs one more vote, and its
// fault tolerance stays the same. So it is allowed only if the next host is ready to make the number odd again.
func mayGrow(voters, target, ready int) bool {
	if voters >= target {
		return false
	}
	next := voters + 1
	return next%2 == 1 || ready >= 2
}
