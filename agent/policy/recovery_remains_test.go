// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestOnlyAVoterOfTheLongestLogMayBeTheSurvivor(t *testing.T) {
	t.Parallel()
	list := []ListedMember{{ID: 1, Name: "n1"}}
	all := []HostRemains{
		{Host: "n1", ClusterID: 7, MemberID: 1, Term: 2, Index: 10, InData: list},
		{Host: "n2", ClusterID: 7, MemberID: 2, Term: 2, Index: 9, InData: list},
	}
	got := RankHosts(all)
	if !got[0].Chosen || got[0].Index != 0 || got[1].Chosen || got[1].Excluded != "it is no longer a voter" {
		t.Errorf("the data lists only one of them as a voter, and they rank as %+v", got)
	}
	all[0].InData, all[1].InData = nil, nil // without a member list, no host is excluded
	if got := RankHosts(all); got[1].Excluded != "" || got[1].Behind != 1 {
		t.Errorf("no member list is known, and they rank as %+v", got)
	}
}
