// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
)

// compared returns a comparison of n1, n2 and n3 at a compaction.
func compared(at, revision int64, sums ...uint32) hashResult {
	p := hashResult{
		began: time.Duration(at) * time.Minute, newest: revision, compared: revision,
		voters: threeVoters().Members, answers: map[uint64]cluster.Hash{},
	}
	for i, sum := range sums {
		p.answers[uint64(i)+1] = cluster.Hash{Sum: sum, Compacted: revision - 1}
	}
	return p
}

// looked returns a reading of the last compaction without a comparison.
func looked(at, newest int64) hashResult {
	return hashResult{began: time.Duration(at) * time.Minute, newest: newest}
}

// takes evaluates results.
func takes(all ...hashResult) *hashes {
	h := &hashes{}
	for _, p := range all {
		h.take(p, p.began)
	}
	return h
}

// differed returns how many comparisons in a row each voter differed in.
func (h *comparison) differed() map[uint64]int {
	out := map[uint64]int{}
	for id, c := range h.counts {
		if c.differed > 0 {
			out[id] = c.differed
		}
	}
	return out
}

func TestACompactionIsComparedOnceAndOnlyIfItIsLaterThanTheStartOfTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		results []hashResult
		due     int64
		absent  string
	}{
		"no compaction": {[]hashResult{looked(1, 0)}, 0, "etcd has never compacted its history"},
		"one before the start": {
			[]hashResult{looked(1, 5)}, 0, "etcd has not compacted its history since quorumd started",
		},
		"the first one": {[]hashResult{looked(1, 0), looked(2, 5)}, 5, "etcd has never compacted its history"},
		"a later one": {
			[]hashResult{looked(1, 5), looked(2, 9)}, 9, "etcd has not compacted its history since quorumd started",
		},
		"it was compared": {[]hashResult{looked(1, 5), looked(2, 9), compared(3, 9, 1, 1, 1)}, 0, ""},
		"a failed read": {
			[]hashResult{{began: time.Minute, err: errors.New("no answer")}}, 0, "the last compaction cannot be read",
		},
	} {
		h := takes(c.results...)
		if h.due != c.due || h.seen.Absent != c.absent || h.seen.Known != (c.absent == "") {
			t.Errorf("%s: due %d, %+v", name, h.due, h.seen)
		}
	}
}

func TestADifferenceIsCountedForThisHostByCompactionAndForOthersByComparison(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		results       []hashResult
		inRow, agreed int
		differ        map[uint64]int
	}{
		"all equal":         {[]hashResult{compared(1, 9, 1, 1, 1)}, 0, 1, nil},
		"all equal again":   {[]hashResult{compared(1, 9, 1, 1, 1), compared(2, 12, 4, 4, 4)}, 0, 2, nil},
		"another differs":   {[]hashResult{compared(1, 9, 1, 1, 2)}, 0, 1, map[uint64]int{3: 1}},
		"this host differs": {[]hashResult{compared(1, 9, 2, 1, 1)}, 1, 0, map[uint64]int{1: 1}},
		"at the same compaction": {
			[]hashResult{compared(1, 9, 2, 1, 1), compared(2, 9, 2, 1, 1)}, 1, 0, map[uint64]int{1: 1},
		},
		"at a later compaction": {
			[]hashResult{compared(1, 9, 2, 1, 1), compared(2, 12, 3, 4, 4)}, 2, 0, map[uint64]int{1: 2},
		},
		"it agrees again": {
			[]hashResult{compared(1, 9, 2, 1, 1), compared(2, 12, 3, 4, 4), compared(3, 15, 5, 5, 5)}, 0, 1, nil,
		},
		"no majority": {[]hashResult{compared(1, 9, 1, 1, 2), compared(2, 12, 1, 2, 3)}, 0, 1, map[uint64]int{}},
	} {
		h := takes(c.results...)
		n1 := h.counts[1]
		if n1.differed != c.inRow || n1.agreed != c.agreed || !maps.Equal(h.differed(), c.differ) {
			t.Errorf("%s: %+v, counts %+v", name, h.seen, h.counts)
		}
	}
}

func TestAComparisonWithoutAResultKeepsTheLastOne(t *testing.T) {
	t.Parallel()
	h := takes(compared(1, 9, 1, 1, 2))
	silent := compared(2, 12, 1)
	none := cluster.Hash{Err: errors.New("silent")}
	silent.answers[2], silent.answers[3] = none, none
	h.take(silent, silent.began)
	if h.counts[3].differed != 1 || h.seen.Revision != 9 {
		t.Errorf("%+v, counts %+v", h.seen, h.counts)
	}
	h.keep(threeVoters().Members[:2], 5*time.Minute)
	if len(h.differed()) > 0 || !h.seen.Known || len(h.seen.Differ) > 0 || h.due != 0 {
		t.Errorf("after the voter has left: %+v, counts %+v, due %d", h.seen, h.counts, h.due)
	}
	h.keep(threeVoters().Members[:1], 5*time.Minute)
	if h.seen.Known {
		t.Errorf("a single voter is compared: %+v", h.seen)
	}
}

func TestAnAddedVoterOrAMissingAnswerDisprovesNothing(t *testing.T) {
	t.Parallel()
	h := takes(compared(1, 9, 2, 1, 1), compared(2, 12, 2, 1, 1))
	added := cluster.Member{ID: 4, Name: "n4"}
	h.keep(append(threeVoters().Members, added), 5*time.Minute)
	late := compared(3, 15, 2, 1, 1)
	late.voters = append(late.voters, added)
	late.answers[4] = cluster.Hash{Sum: 1, Compacted: 15}
	h.take(late, late.began)
	if h.counts[1].differed != 2 || h.seen.Divided {
		t.Errorf("after a voter was added: %+v, counts %+v", h.seen, h.counts)
	}
	missing := compared(4, 18, 2, 1)
	missing.answers[3] = cluster.Hash{Err: errors.New("silent")}
	h.take(missing, missing.began)
	if h.counts[1].differed != 2 || h.seen.Divided {
		t.Errorf("after a missing answer: %+v, counts %+v", h.seen, h.counts)
	}
	for at := range int64(2) {
		silent := compared(5+at, 21+at, 2, 1, 1)
		silent.answers[1] = cluster.Hash{Err: errors.New("no answer in time")}
		h.take(silent, silent.began)
		if h.counts[1] != (hashCount{differed: 2, since: time.Minute}) || len(h.seen.Differ) != 1 {
			t.Errorf("a corrupt member that does not answer: %+v, counts %+v", h.seen, h.counts)
		}
	}
}

func TestAProofRemainsValidAfterAnIntactVoterHasLeft(t *testing.T) {
	t.Parallel()
	h := takes(compared(1, 9, 1, 1, 2), compared(2, 12, 1, 1, 2))
	h.keep(threeVoters().Members[1:], 5*time.Minute)
	if h.counts[3].differed != 2 || h.seen.Divided || !slices.Equal(h.seen.Differ, []string{"n3"}) {
		t.Errorf("%+v, counts %+v", h.seen, h.counts)
	}
}

func TestWithoutAVoterThatHasLeftAMajorityMayHaveTheSameData(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sums    [4]uint32
		divided bool
		differ  map[uint64]int
	}{
		"two against one": {[4]uint32{1, 1, 2, 2}, false, map[uint64]int{3: 1}},
		"all differ":      {[4]uint32{1, 2, 3, 4}, true, map[uint64]int{}},
	} {
		p := compared(1, 9, c.sums[:]...)
		p.voters = append(p.voters, cluster.Member{ID: 4, Name: "n4"})
		h := takes(p)
		if !h.seen.Divided {
			t.Errorf("%s: a majority of four voters has the same data: %+v", name, h.seen)
		}
		h.keep(threeVoters().Members, 5*time.Minute)
		if h.seen.Divided != c.divided || !maps.Equal(h.differed(), c.differ) {
			t.Errorf("%s: %+v, counts %+v", name, h.seen, h.counts)
		}
	}
}

func TestAHostThatRejoinsWithAnotherMemberStartsToCountAgain(t *testing.T) {
	t.Parallel()
	h := takes(compared(1, 9, 2, 1, 1), compared(2, 12, 2, 1, 1))
	rejoined := threeVoters().Members
	rejoined[0].ID = 4
	h.keep(rejoined[1:], 5*time.Minute)
	h.keep(rejoined, 5*time.Minute)
	if len(h.differed()) != 0 || len(h.seen.Differ) != 0 {
		t.Errorf("before a comparison: %+v, counts %+v", h.seen, h.counts)
	}
	p := compared(6, 15, 0, 1, 1)
	p.voters, p.answers[4] = rejoined, cluster.Hash{Sum: 2, Compacted: 14}
	h.take(p, p.began)
	if h.counts[4].differed != 1 {
		t.Errorf("after a comparison: %+v, counts %+v", h.seen, h.counts)
	}
}

func TestVotersWithTheSameNameAreNotConfused(t *testing.T) {
	t.Parallel()
	p := compared(1, 9, 2, 1, 1)
	p.voters = slices.Clone(p.voters)
	for i := range p.voters {
		p.voters[i].Name = "default"
	}
	h := takes(p)
	if h.counts[1].differed != 1 || len(h.differed()) != 1 {
		t.Errorf("%+v, counts %+v", h.seen, h.counts)
	}
}

func TestVotersOfDifferentVersionsAreNotCompared(t *testing.T) {
	t.Parallel()
	voters := threeVoters().Members
	running := func(versions ...string) map[uint64]cluster.Status {
		all := applied(1, 1, 1)
		for i, v := range versions {
			all = changed(all, uint64(i)+1, func(s *cluster.Status) { s.Version = v })
		}
		return all
	}
	if !sameVersion(voters, running("3.6.16", "3.6.16", "3.6.16")) {
		t.Error("equal versions are not compared")
	}
	if sameVersion(voters, running("3.6.16", "3.6.16", "3.6.12")) {
		t.Error("different versions are compared")
	}
}
