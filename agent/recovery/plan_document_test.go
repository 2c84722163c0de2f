// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func at() time.Time { return time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC) }

// five returns the members of a cluster, n1 to n5.
func five() []Member {
	var list []Member
	for i, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		list = append(list, Member{ID: record.MemberID(i + 1), Name: name, PeerURL: "http://" + name})
	}
	return list
}

// fact returns the facts of a host whose log ends at that entry.
func fact(i int, term, index uint64) Facts {
	m := five()[i-1]
	return Facts{
		Version: Version, HostID: "host-" + m.Name, Host: m.Name, Cluster: "demo", PeerURL: m.PeerURL, Taken: at(),
		Log: Log{Cluster: 0xc1, Member: m.ID, Term: term, Index: index, Commit: index - 1, Members: five()},
	}.Sealed()
}

func choice(gone ...string) Choice {
	return Choice{Cluster: "demo", Gone: gone, At: at().Add(time.Minute), ID: "abcdefghijkl", New: 0xc2}
}

func TestSurvivorHasTheNewestTermThenTheLongestLog(t *testing.T) {
	t.Parallel()
	all := []Facts{fact(1, 3, 500), fact(2, 4, 400)}
	p, err := NewPlan(all, choice("n3", "n4", "n5"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Survivor != "host-n2" || p.Old != 0xc1 || p.New != 0xc2 {
		t.Errorf("the plan is %+v", p)
	}
	if l := Compare(all); l[1].Behind != 1 || !l[0].Chosen || l[1].Chosen {
		t.Errorf("the comparison is %+v", l)
	}
	if l := Compare([]Facts{fact(1, 4, 390), fact(2, 4, 400)}); l[1].Facts.Host != "n1" || l[1].Behind != 10 {
		t.Errorf("the comparison is %+v", l)
	}
}

func TestPlanIsRefusedForUnsuitableFacts(t *testing.T) {
	t.Parallel()
	gone := []string{"n2", "n3", "n4", "n5"}
	with := func(change func(*Facts)) []Facts {
		f := fact(1, 3, 100)
		change(&f)
		return []Facts{f}
	}
	for what, c := range map[string]struct {
		facts   []Facts
		choice  Choice
		wantErr string
	}{
		"a host sees a quorum": {with(func(f *Facts) { f.Quorum = true }), choice(gone...), "n1 sees a quorum"},
		"no facts":             {nil, choice(), "facts of 0 hosts"},
		"old facts": {
			with(func(f *Facts) { f.Taken = at().Add(-policy.MaxFactsAge) }), choice(gone...), "collect them again",
		},
		"facts of the future": {
			with(func(f *Facts) { f.Taken = at().Add(time.Hour) }), choice(gone...), "collect them again",
		},
		"a voter is missing": {with(func(*Facts) {}), choice("n2", "n3", "n4"), "missing from n5"},
		"no data": {
			with(func(f *Facts) { f.Log.Empty = true }), choice(gone...),
			"no host has a voter's data",
		},
		"a learner": {
			with(func(f *Facts) { f.Log.Members[0].Learner = true }), choice(gone...), "no host has a voter's data",
		},
		"the voters are unknown": {
			with(func(f *Facts) { f.Log.Members = nil }), choice(gone...), "no host lists the voters",
		},
		"another name": {with(func(*Facts) {}), Choice{
			Cluster: "demi", Gone: gone, At: at(), ID: "abcdefghijkl", New: 2,
		}, `but "demi" was typed`},
		"the same host twice": {
			[]Facts{fact(1, 3, 100), fact(1, 3, 100)}, choice(gone...), "the facts of n1 were passed twice",
		},
		"another cluster": {
			append(with(func(f *Facts) { f.Log.Cluster = 9 }), fact(2, 3, 100)), choice(gone...),
			"the cluster with the ID",
		},
		"a copy of another host's data": {
			append(with(func(f *Facts) { f.Log.Member = 2 }), fact(2, 3, 100)), choice(gone...),
			"one of them is a copy",
		},
		"enough are left": {
			[]Facts{fact(1, 3, 100), fact(2, 3, 100), fact(3, 3, 100)}, choice("n4", "n5"), "nothing is lost",
		},
		"another survivor without facts": {with(func(*Facts) {}), Choice{
			Cluster: "demo", Gone: gone, At: at(), Survivor: "n4", ID: "abcdefghijkl", New: 2,
		}, "its facts are missing"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, err := NewPlan(c.facts, c.choice)
			if err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%v, %+v", err, p)
			}
		})
	}
}

// lostAll returns the facts of hosts with new disks. Their agents have recorded known as the ID of the cluster; 0 if
// they have recorded none.
func lostAll(known record.MemberID) []Facts {
	var all []Facts
	for i := range 3 {
		f := fact(i+1, 0, 0)
		f.Log, f.Known = Log{Empty: true}, known
		all = append(all, f.Sealed())
	}
	return all
}

func withSnapshot(w Choice) Choice {
	w.Snapshot = &Snapshot{
		Name: "0000000000000000123", Cluster: 0xc0, Contents: record.Contents{Revision: 123, Keys: 7},
		Size: 8192 + 32, SHA256: strings.Repeat("ab", 32), Member: 0x77,
	}
	return w
}

func TestSurvivorStartsFromASnapshotIfNoDataIsLeft(t *testing.T) {
	t.Parallel()
	for known, old := range map[record.MemberID]record.MemberID{0: 0xc0, 0xc1: 0xc1} {
		p, err := NewPlan(lostAll(known), withSnapshot(choice()))
		if err != nil {
			t.Fatal(err)
		}
		if p.Survivor != "host-n1" || p.Old != old || p.Snapshot.Revision != 123 {
			t.Errorf("the plan is %+v", p)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadPlan(bytes.NewReader(text)); err != nil || got.Snapshot.String() != p.Snapshot.Name {
			t.Errorf("the document is read as %+v: %v", got, err)
		}
		for i, now := range lostAll(known) {
			if no := p.Refused(now, at().Add(time.Hour)); no != "" {
				t.Errorf("n%d: %s", i+1, no)
			}
		}
	}
	named := withSnapshot(choice())
	named.Survivor = "n3"
	if p, err := NewPlan(lostAll(0), named); err != nil || p.Survivor != "host-n3" {
		t.Errorf("with n3 as the survivor: %+v, %v", p, err)
	}
}

func TestSnapshotReplacesNewerDataOnlyOfANamedHost(t *testing.T) {
	t.Parallel()
	all := append(lostAll(0)[1:], fact(1, 3, 100))
	w := withSnapshot(choice("n4", "n5"))
	if _, err := NewPlan(all, w); err == nil || !strings.Contains(err.Error(), "n1 has the data of a voter, up to "+
		"entry 100: plan without --from-snapshot") {
		t.Errorf("a plan that discards newer data: %v", err)
	}
	w.Survivor = "n2"
	if p, err := NewPlan(all, w); err != nil || p.Survivor != "host-n2" || p.Old != 0xc1 {
		t.Errorf("the plan is %+v: %v", p, err)
	}
	w.Survivor = "n9"
	if _, err := NewPlan(all, w); err == nil || !strings.Contains(err.Error(), "its facts are missing") {
		t.Errorf("a plan for an unknown host: %v", err)
	}
	all[0].Quorum = true
	w.Survivor = "n2"
	if _, err := NewPlan(all, w); err == nil || !strings.Contains(err.Error(), "sees a quorum") {
		t.Errorf("a plan while there is a quorum: %v", err)
	}
}

func TestPlanWithAnInvalidSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Snapshot){
		"no name":       func(s *Snapshot) { s.Name = "" },
		"name and file": func(s *Snapshot) { s.File = "/x" },
		"relative path": func(s *Snapshot) { s.Name, s.File = "", "x" },
		"no checksum":   func(s *Snapshot) { s.SHA256 = "ab" },
		"no size":       func(s *Snapshot) { s.Size = 32 },
		"no revision":   func(s *Snapshot) { s.Revision = 0 },
		"no member":     func(s *Snapshot) { s.Member = 0 },
	} {
		w := withSnapshot(choice())
		change(w.Snapshot)
		if p, err := NewPlan(lostAll(0), w); err == nil {
			t.Errorf("%s: %+v", what, p)
		}
		work := Work{Plan: "abcdefghijkl", Cluster: 2, Member: w.Snapshot.Member, Snapshot: w.Snapshot}
		if work.Check() == nil {
			t.Errorf("%s: Check accepts it", what)
		}
	}
}

func TestHostAcceptsAPlanOnlyIfItsFactsAreUnchanged(t *testing.T) {
	t.Parallel()
	p, err := NewPlan([]Facts{fact(1, 3, 100)}, choice("n2", "n3", "n4", "n5"))
	if err != nil {
		t.Fatal(err)
	}
	now := fact(1, 3, 100)
	if text := p.Refused(now, at().Add(time.Hour)); text != "" {
		t.Errorf("refused: %s", text)
	}
	for what, change := range map[string]func(*Facts){
		"a longer log":    func(f *Facts) { f.Log.Index++ },
		"a newer term":    func(f *Facts) { f.Log.Term++ },
		"another member":  func(f *Facts) { f.Log.Member = 77 },
		"another cluster": func(f *Facts) { f.Log.Cluster = 77 },
		"no data":         func(f *Facts) { f.Log.Empty = true },
		"a quorum":        func(f *Facts) { f.Quorum = true },
		"another host":    func(f *Facts) { f.HostID = "host-n9" },
		"another name":    func(f *Facts) { f.Cluster = "demi" },
	} {
		f := now
		change(&f)
		if p.Refused(f, at().Add(time.Hour)) == "" {
			t.Errorf("%s: the plan is accepted", what)
		}
	}
	if p.Refused(now, at().Add(policy.MaxPlanAge+time.Hour)) == "" {
		t.Error("an old plan is accepted")
	}
}

func TestEditedDocumentIsRefused(t *testing.T) {
	t.Parallel()
	p, err := NewPlan([]Facts{fact(1, 3, 100)}, choice("n2", "n3", "n4", "n5"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPlan(bytes.NewReader(text)); err != nil || got.ID != p.ID {
		t.Fatalf("the document is refused: %v", err)
	}
	facts, err := json.Marshal(fact(1, 3, 100))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFacts(bytes.NewReader(facts)); err != nil {
		t.Fatalf("the document is refused: %v", err)
	}
	for what, edited := range map[string]string{
		"another index": strings.Replace(string(text), `"lastIndex": 100`, `"lastIndex": 101`, 1),
		"another ID":    strings.Replace(string(text), p.ID, "../../../../x", 1),
		"half":          string(text[:len(text)/2]),
		"more":          string(text) + "{}",
		"a new field":   strings.Replace(string(text), `"version"`, `"extra": 1, "version"`, 1),
		"nothing":       "",
		"too large":     strings.Repeat(" ", MaxSize) + string(text),
	} {
		if _, err := ReadPlan(strings.NewReader(edited)); err == nil {
			t.Errorf("%s: ReadPlan accepts it", what)
		}
		if _, err := ReadFacts(strings.NewReader(edited)); err == nil {
			t.Errorf("%s: ReadFacts accepts it", what)
		}
	}
}

func FuzzPlanIsReadOrRefused(f *testing.F) {
	p, err := NewPlan([]Facts{fact(1, 3, 100)}, choice("n2", "n3", "n4", "n5"))
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadPlan(bytes.NewReader(text))
		if err == nil && (p.FactsOf(p.Survivor) == nil || !IsPlanID(p.ID)) {
			t.Errorf("%q is a plan", text)
		}
	})
}
