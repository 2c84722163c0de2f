// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
)

// All arithmetic about quorums stands here. A live voter is one that has itself answered a
// linearizable read in this round.

// Quorum is the number of voters that must agree: more than half.
func Quorum(voters int) int { return voters/2 + 1 }

// Tolerance is how many more voters may fail before the quorum is lost; negative when it is lost
// already.
func Tolerance(voters, live int) int { return live - Quorum(voters) }

// voters gives the voting members.
func (c Cluster) voters() iter.Seq[Member] { return c.members(false) }

// learners gives the members that do not vote.
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

// Counts gives the number of voters and how many of them are live.
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

// learning gives the number of learners.
func (c Cluster) learning() int {
	voters, _ := c.Counts()
	return len(c.Members) - voters
}

// Standbys gives the number of learners that have joined: one that is on its way is none yet, nor is one that has never
// started.
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

// mayChange tells whether the membership may be changed by a step that nobody is forced to take:
// every voter is live. A change while one is down leaves no spare failure, or makes the one that
// is down decide.
func mayChange(voters, live int) bool { return voters > 0 && live == voters }

// mayStop tells whether one voter of so many may be taken down for a while, when proven of the others
// are known at this moment to be live and healthy. All of them must be: what is left then still has a
// quorum. Two voters can spare none, and an even number can spare no more than the odd one below it:
// it stands only while the cluster grows.
func mayStop(voters, proven int) bool {
	return voters >= 3 && voters%2 == 1 && proven == voters-1
}

// mayRemove tells whether a voter may be taken out of so many for good, when others of the rest are live. What is left
// must have a quorum of itself. With one that is live a spare failure goes, so that nobody else may be down then.
func mayRemove(voters, others int, live bool) bool {
	left := voters - 1
	if live {
		return left > 0 && others == left
	}
	return left > 0 && others >= Quorum(left)
}

// mayReplaceDead tells whether one of so many voters that are down may be taken out for good, and another host put in
// its place, when proven of the others are known at this moment to be live and healthy. All of them must be, and what
// they have is a quorum also before anything is changed.
func mayReplaceDead(voters, down, proven int) bool {
	return down > 0 && proven == voters-down && proven >= Quorum(voters)
}

// mayRemoveSurplus tells whether one of so many voters that is down may be taken out for good where they are one more
// than wanted, when proven of the others are known at this moment to be live and healthy, and untold are live, and
// nobody tells how they are. Nothing is lost if these are not healthy: the others are a quorum of what is left.
func mayRemoveSurplus(voters, down, proven, untold int) bool {
	return down == 1 && proven+untold == voters-1 && proven >= Quorum(voters-1)
}

// mayJoinBesideSlow tells whether a host may vote in the place of one of so many voters that is not live, and goes
// after that: all others are live, are a quorum, and together with that host one of one voter more.
func mayJoinBesideSlow(voters, live int) bool {
	return live == voters-1 && live >= Quorum(voters) && live+1 >= Quorum(voters+1)
}

// keepsOdd tells whether one of so many voters, of which target are wanted, may give way to another host. That keeps
// their number, also where it is even: it was before, and counted one that is dead. Where there are more than wanted
// nobody comes in its place, which is good only if it makes the number odd.
func keepsOdd(voters, target int) bool { return voters <= target || voters%2 == 0 }

// mayJoinBeside tells whether one of so many voters, of which target are wanted, may vote beside another until that one
// is removed. With an even number a place is free, and goes first; or one has been filled, and who was to go is there
// still.
func mayJoinBeside(voters, target int) bool { return voters%2 == 1 && voters <= target }

// isOneTooMany tells whether one voter more than wanted makes their number even: one was to go when another had taken
// its place, and has not gone.
func isOneTooMany(voters, target int) bool { return voters%2 == 0 && voters > target }

// spareText says why that many voters can spare none.
func spareText(voters int) string {
	switch voters {
	case 1:
		return "it is the only voter: without it there is no cluster"
	case 2:
		return "two voters tolerate no failure"
	}
	return fmt.Sprintf("%d voters are an even number: wait until it is odd", voters)
}

// mayGrow tells whether one more voter may be made when there are so many and target are wanted,
// with ready hosts waiting that could become voters, the one in question included. Growing to an
// even number is worse than staying: it needs one more for the quorum and tolerates no more
// failures. So it is done only when the next host stands ready to make the number odd again.
func mayGrow(voters, target, ready int) bool {
	if voters >= target {
		return false
	}
	next := voters + 1
	return next%2 == 1 || ready >= 2
}
