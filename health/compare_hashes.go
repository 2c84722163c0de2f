// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// The codes of the checks that compare the data of the voters.
const (
	MemberDiffers Code = "MEMBER_DIFFERS"
	MemberCorrupt Code = "MEMBER_CORRUPT"
	VotersDiffer  Code = "VOTERS_DIFFER"
)

// HashProofs is how many comparisons in a row, each at a later compaction, must find a difference before a voter counts
// as corrupt: a single one may be a transient error.
const HashProofs = 2

// HashesReading is the last comparison of the voters' hashes of their data. The zero value means not compared.
type HashesReading struct {
	Known  bool
	Absent string // why no comparison exists, as a stable text
	// NoVoter means that this host has no voter. This ends a finding about the host's data.
	NoVoter bool
	Host    string // the name of this host
	// Revision is the compaction at which the hashes were compared, and Voters the number of all voters.
	Revision int64
	Voters   int
	// HashComparison is the result. After a comparison without a voter's hash, Differ and DifferID still contain that
	// voter if it differed before.
	HashComparison
	// InRow is how many comparisons in a row, each at a later compaction, found that this host's voter differs, and
	// Agreed how many in a row found that it does not.
	InRow, Agreed int
}

// VoterHash is a voter's hash of its data.
type VoterHash struct {
	ID   uint64
	Name string // for texts; several voters may have the same
	Sum  uint32
	// Compacted is the compaction before the one at which the hash was taken. Only hashes with the same Compacted are
	// compared.
	Compacted int64
	Absent    string // why there is no hash; empty if there is one
}

// HashComparison is the result of a comparison of hashes.
type HashComparison struct {
	// Agree is the size of the largest group of voters with the same hash. If that group is a majority of all voters,
	// Differ names the voters with a different hash.
	Agree    int
	Differ   []string
	DifferID []uint64 // their member IDs
	// ComparedID are the voters that returned a hash. If a majority has the same hash, ComparedID omits the voters
	// whose hash was taken after a different compaction.
	ComparedID []uint64
	// Divided means that hashes differ and no majority of all voters has the same one, so it is unknown whose data is
	// correct.
	Divided bool
}

// CompareHashes compares the hashes of all voters. needed is the quorum: that many equal hashes prove that a different
// one is wrong. It returns why there is no result, and an empty text if there is one.
func CompareHashes(voters []VoterHash, needed int) (c HashComparison, absent string) {
	type group struct {
		sum       uint32
		compacted int64
	}
	sizes, largest, compared := map[group]int{}, group{}, map[int64]uint32{}
	for _, v := range voters {
		if v.Absent != "" {
			absent = v.Name + ": " + v.Absent
			continue
		}
		g := group{v.Sum, v.Compacted}
		if sizes[g]++; sizes[g] > sizes[largest] {
			largest = g
		}
		if other, some := compared[v.Compacted]; some && other != v.Sum {
			c.Divided = true
		}
		compared[v.Compacted] = v.Sum
	}
	if c.Agree = sizes[largest]; len(voters) < 2 {
		return HashComparison{}, "the cluster has no other voter"
	}
	proves := c.Agree >= needed && c.Agree > 1
	for _, v := range voters {
		switch {
		case v.Absent != "", proves && v.Compacted != largest.compacted:
			continue
		case proves && v.Sum != largest.sum:
			c.Differ, c.DifferID = append(c.Differ, v.Name), append(c.DifferID, v.ID)
		}
		c.ComparedID = append(c.ComparedID, v.ID)
	}
	if c.Divided = c.Divided && !proves; proves || c.Divided {
		return c, ""
	}
	if absent == "" {
		absent = "the voters compacted their data at different revisions"
	}
	return HashComparison{}, absent
}

// declareHashes declares the check of the local member's data. A member whose disk or memory changed a value serves the
// wrong value, even to linearizable reads, and etcd notices it only if its own checks are enabled.
func declareHashes() declaration {
	limit := Limit{Of: "comparisons in a row with a different hash", Unit: "comparisons", Enter: HashProofs - 1}
	return declaration{
		Check: Check{
			Name: "member-data", Component: Etcd, Gates: Everything,
			Source: "each voter's hash of all keys and values at the last compaction (HashKV)",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					MemberDiffers, Etcd, Warm, "This host's member holds different data from a majority of the voters.",
					"One comparison found this. The member's clients may read wrong values. The next compaction " +
						"will show whether the data still differs.",
					"check 'journalctl -k' for disk and memory errors; restart no other member",
				},
				{
					MemberCorrupt, Etcd, Failed, "The data of this host's member is corrupt.",
					"At two compactions in a row, a majority of all voters had identical data, and this " +
						"member's data differed. Its clients read wrong values, and etcd does not notice unless " +
						"its own checks are enabled.",
					"let another host replace the member (repair.unhealthy), or run 'quorumctl retire HOST " +
						"--reason …' or, without a spare, 'quorumctl member remove NAME --live --reason …' on " +
						"another host; keep the host retired until its disk and memory are checked",
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(at *track) evidence { return &memberData{track: at} },
	}
}

// memberData is the evidence about the local member's data.
type memberData struct {
	plain

	track *track
	seen  HashesReading
}

func (d *memberData) read(in Input) { d.seen = in.Etcd.Hashes }

func (d *memberData) absent() string {
	if d.seen.NoVoter && d.track.State != OK {
		return ""
	}
	return Figure{Known: d.seen.Known, Absent: d.seen.Absent}.absent()
}

func (d *memberData) text() string {
	switch s := d.seen; {
	case s.NoVoter:
		return "this host has no voter"
	case !s.Known:
		return d.absent()
	case s.InRow > 0:
		return d.differs()
	case s.Divided:
		return "the voters' data differs, and no majority agrees"
	}
	return fmt.Sprintf("its data at revision %d is identical on %d of %d voters", d.seen.Revision, d.seen.Agree,
		d.seen.Voters)
}

func (d *memberData) differs() string {
	s := d.seen
	return fmt.Sprintf("%s's data differs at revision %d from that of %d of %d voters (%d of %d comparisons that "+
		"prove it)", s.Host, s.Revision, s.Agree, s.Voters, min(s.InRow, HashProofs), HashProofs)
}

func (d *memberData) transitions() []rule {
	differs := func(least int) func() (string, bool) {
		return when(func() bool {
			return d.seen.Known && !d.seen.NoVoter && d.seen.InRow >= least
		}, d.differs)
	}
	agrees := func(least int) func() (string, bool) {
		return when(func() bool { return d.seen.Known && !d.seen.NoVoter && d.seen.Agreed >= least }, d.text)
	}
	return []rule{
		{
			[]State{Warm, Failed},
			OK, "", "this host has no voter",
			when(func() bool { return d.seen.NoVoter }, d.text), false,
		},
		{
			[]State{OK, Warm},
			Failed, MemberCorrupt, fmt.Sprintf("%d comparisons in a row find a different hash", HashProofs),
			differs(HashProofs), false,
		},
		{[]State{OK}, Warm, MemberDiffers, "1 comparison finds a different hash", differs(1), false},
		{[]State{Warm}, OK, "", "1 comparison finds the same hash", agrees(1), false},
		{
			[]State{Failed},
			OK, "", fmt.Sprintf("%d comparisons in a row find the same hash", HashProofs), agrees(HashProofs), false,
		},
	}
}

// checkVotersDiffer is the check of the data of all voters. Every voter's host has the finding, so that it is reported
// even if the corrupt member's host has no agent.
var checkVotersDiffer = advice{
	name: "voters-data", component: Etcd, behind: []string{"member-data"},
	source: "each voter's hash of all keys and values at the last compaction (HashKV)",
	limit:  Limit{Of: "voters with different data", Unit: "voters"},
	code:   VotersDiffer,
	title:  "The voters hold different data.",
	meaning: "Clients may read different values from different members. If a majority of all voters has the same " +
		"data, the others are corrupt. Otherwise it is unknown whose data is correct: quorumd adds and removes no " +
		"member by itself, and takes no voter down.",
	remedy: "if a member is named, see the finding of its host; otherwise bring back voters that are down, stop the " +
		"writers, and follow the runbook",
	measure: lists(0, time.Minute, listed{
		bad:  "voters hold different data",
		well: "all compared voters hold the same data",
		missing: func(in Input) string {
			return Figure{Known: in.Etcd.Hashes.Known, Absent: in.Etcd.Hashes.Absent}.absent()
		},
		look: func(in Input, _ bool) []string { return in.Etcd.Hashes.differing() },
	}),
}

// differing describes the voters with different data.
func (r HashesReading) differing() []string {
	switch {
	case r.Divided:
		return []string{fmt.Sprintf("%d of %d voters were compared at revision %d: their data differs, and at most %d "+
			"have the same", len(r.ComparedID), r.Voters, r.Revision, r.Agree)}
	case len(r.Differ) > 0:
		return []string{fmt.Sprintf("%s: data differs at revision %d from that of %d of %d voters",
			strings.Join(r.Differ[:min(len(r.Differ), listedMost)], ", "), r.Revision, r.Agree, r.Voters)}
	}
	return nil
}
