// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// sameData returns a comparison of three voters with the same data.
func sameData() HashesReading {
	return HashesReading{
		Known: true, Host: "n2", Revision: 4711, Voters: 3, HashComparison: HashComparison{Agree: 3}, Agreed: 1,
	}
}

// differentData returns the last of this many comparisons in a row in which this host's data differs.
func differentData(inRow int) HashesReading {
	r := sameData()
	r.HashComparison, r.InRow, r.Agreed = HashComparison{Agree: 2, Differ: []string{"n2"}}, inRow, 0
	return r
}

func hashesEdges() []edge {
	at := func(r HashesReading) func(*bench) {
		return func(b *bench) { b.etcd.Hashes = r; b.each(time.Second, quiet) }
	}
	agreed := func(n int) HashesReading { r := sameData(); r.Agreed = n; return r }
	gone := NotAvailable[HashesReading]("etcd does not run here")
	gone.NoVoter = true
	unknown := NotAvailable[HashesReading]("the members run different versions")
	divided := sameData()
	divided.HashComparison = HashComparison{Agree: 1, Divided: true}
	return []edge{
		{"voters hold different data", at(sameData()), at(divided)},
		{
			"all compared voters hold the same data",
			func(b *bench) { at(divided)(b); b.etcd.Hashes = sameData(); b.each(time.Minute-time.Second, quiet) },
			at(sameData()),
		},
		{"this host has no voter", at(unknown), at(gone)},
		{"2 comparisons in a row find a different hash", at(differentData(1)), at(differentData(2))},
		{"1 comparison finds a different hash", at(sameData()), at(differentData(1))},
		{"1 comparison finds the same hash", at(unknown), at(agreed(1))},
		{"2 comparisons in a row find the same hash", at(agreed(1)), at(agreed(2))},
	}
}

func TestDifferentDataIsFoundAtOnceAndCorruptDataAtTheSecondCompaction(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.etcd.Hashes = differentData(1)
	b.look()
	const want = "n2's data differs at revision 4711 from that of 2 of 3 voters (1 of 2 comparisons that prove it)"
	if v := b.result; v.State != Warm || v.Code != MemberDiffers || v.Text != want || v.Gates != Everything {
		t.Errorf("got %+v", v)
	}
	b.etcd.Hashes = differentData(2)
	b.look()
	if v := b.result; v.State != Failed || v.Code != MemberCorrupt || v.Gates != Everything {
		t.Errorf("got %+v", v)
	}
	b.etcd.Hashes = NotAvailable[HashesReading]("the cluster does not answer")
	b.look()
	if v := b.result; v.State != Failed || v.Code != MemberCorrupt {
		t.Errorf("without a comparison: %+v", v)
	}
}

func TestEveryHostReportsWhichVoterDiffers(t *testing.T) {
	t.Parallel()
	b := withChecks(t)
	b.etcd.Hashes.HashComparison = HashComparison{Agree: 2, Differ: []string{"n3"}}
	b.each(time.Second, quiet)
	found := func(text string) bool {
		return slices.ContainsFunc(b.result.Findings, func(f Finding) bool {
			return f.Code == VotersDiffer && f.Gates == Nothing && strings.Contains(f.Text, text)
		})
	}
	if !found("n3: data differs at revision 4711 from that of 2 of 3 voters") || b.result.State != OK {
		t.Errorf("%s, got %+v", b.result.State, b.result.Findings)
	}
	b.etcd.Hashes.HashComparison = HashComparison{Agree: 1, Divided: true}
	b.each(time.Second, quiet)
	const tie = "0 of 3 voters were compared at revision 4711: their data differs, and at most 1 have the same"
	if !found(tie) || b.result.State != OK {
		t.Errorf("%s, got %+v", b.result.State, b.result.Findings)
	}
}

// hashedAs returns one voter for each letter: equal letters are equal hashes, a capital letter is a hash after another
// compaction, and - is no answer.
func hashedAs(letters string) (all []VoterHash) {
	for i, c := range letters {
		v := VoterHash{Name: string(rune('1' + i)), Compacted: 5}
		switch {
		case c == '-':
			v.Absent = "no answer in time"
		case c < 'a':
			v.Sum, v.Compacted = uint32(c-'A'), 7
		default:
			v.Sum = uint32(c - 'a')
		}
		all = append(all, v)
	}
	return all
}

func TestOnlyAMajorityOfAllVotersProvesThatAHashIsWrong(t *testing.T) {
	t.Parallel()
	for letters, want := range map[string]string{
		"a": "the cluster has no other voter", "aa": "same", "ab": "divided", "a-": "2: no answer in time",
		"aaa": "same", "aab": "3", "aba": "2", "abc": "divided", "aa-": "same", "ab-": "divided",
		"a--": "3: no answer in time", "---": "3: no answer in time",
		"aaB": "same", "aAB": "divided", "abA": "divided", "aA-": "3: no answer in time",
		"aaaaa": "same", "aaaab": "5", "aaabb": "4 5", "aaabc": "4 5", "aabbc": "divided", "aaab-": "4",
		"aab--": "divided", "aaa--": "same", "aa---": "5: no answer in time", "aaaBB": "same",
		"aAaAA": "same", "aaAA-": "5: no answer in time",
		"aA": "the voters compacted their data at different revisions",
	} {
		got, absent := CompareHashes(hashedAs(letters), len(letters)/2+1)
		text := absent
		switch {
		case absent != "":
		case got.Divided:
			text = "divided"
		case len(got.Differ) == 0:
			text = "same"
		default:
			text = strings.Join(got.Differ, " ")
		}
		if text != want || got.Divided && len(got.Differ) > 0 {
			t.Errorf("%s: %q (%+v), want %q", letters, text, got, want)
		}
	}
}

// TestNoIntactVoterIsEverAccused tries every corrupt minority of two to seven voters. Each intact voter returns the
// correct hash, returns it after a different compaction, or does not answer, in every combination.
func TestNoIntactVoterIsEverAccused(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 7; n++ {
		letters := make([]byte, n)
		var explore func(i, corrupt int)
		explore = func(i, corrupt int) {
			if i == n {
				if got, absent := CompareHashes(hashedAs(string(letters)), n/2+1); absent == "" {
					for _, name := range got.Differ {
						if letters[name[0]-'1'] == 'a' && 2*corrupt < n {
							t.Errorf("%s accuses %s", letters, name)
						}
					}
				}
				return
			}
			for _, c := range []byte("a-A") {
				letters[i] = c
				explore(i+1, corrupt)
			}
			if 2*(corrupt+1) < n {
				letters[i] = 'b'
				explore(i+1, corrupt+1)
			}
		}
		explore(0, 0)
	}
}
