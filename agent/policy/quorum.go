// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// All arithmetic about quorums stands here. A live voter is one that has itself answered a
// linearizable read in this round.

// Quorum is the number of voters that must agree: more than half.
func Quorum(voters int) int { return voters/2 + 1 }

// Tolerance is how many more voters may fail before the quorum is lost; negative when it is lost
// already.
func Tolerance(voters, live int) int { return live - Quorum(voters) }

// voters gives the voting members.
func (c Cluster) voters() []Member {
	var out []Member
	for _, m := range c.Members {
		if !m.Learner {
			out = append(out, m)
		}
	}
	return out
}

// learners gives the members that do not vote.
func (c Cluster) learners() []Member {
	var out []Member
	for _, m := range c.Members {
		if m.Learner {
			out = append(out, m)
		}
	}
	return out
}

// Counts gives the number of voters and how many of them are live.
func (c Cluster) Counts() (voters, live int) {
	for _, m := range c.voters() {
		voters++
		if m.Live {
			live++
		}
	}
	return voters, live
}

// mayChange tells whether the membership may be changed by a step that nobody is forced to take:
// every voter is live. A change while one is down leaves no spare failure, or makes the one that
// is down decide.
func mayChange(voters, live int) bool { return voters > 0 && live == voters }

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
