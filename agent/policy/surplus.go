// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// surplus tells people that more hosts vote than are wanted, and that nobody goes by itself: the voter in whose place
// another one votes by now is well again, and that one's agent has not had it removed. Which of them is to go no record
// says any more, and a voter that is well is removed by nobody but a person. What else is wrong with one of them is
// told first, with what becomes of it.
func surplus(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	several := v.Cluster.Reachable && !v.foreign() && live == voters && voters > v.Target.Voters
	if !several || v.Op != nil || v.Cluster.StableFor < v.Limits.Settle || v.oneTooMany() && len(SickVoters(v)) > 0 {
		return "", false
	}
	text := fmt.Sprintf("%d hosts vote, %d are wanted", voters, v.Target.Voters)
	if isOneTooMany(voters, v.Target.Voters) {
		text += "; while their number is even none of them is taken down"
	}
	return text, true
}
