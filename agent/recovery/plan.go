// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// Made is what was made of the survivor's data.
type Made struct {
	Plan    string          `json:"plan"`
	Cluster record.MemberID `json:"clusterID"`
	Member  record.MemberID `json:"memberID"`
	Before  int64           `json:"revisionBefore"` // the revision that was reached, with all of the log
	After   int64           `json:"revisionAfter"`  // from which the cluster goes on
}

// Plan is what each of the hosts is to do.
type Plan struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Cluster  string          `json:"cluster"` // its name
	Made     time.Time       `json:"made"`
	Old      record.MemberID `json:"oldClusterID"`
	New      record.MemberID `json:"newClusterID"`
	Survivor string          `json:"survivor"` // host ID
	Facts    []Facts         `json:"facts"`
	Gone     []string        `json:"gone"` // voters that are not coming back, by name or ID
	Checksum string          `json:"checksum"`
}

// Bounds of what a plan is made of.
const (
	MaxHosts = 32
	// MaxAge is how old facts may be, and MaxAhead how far a host's clock may be ahead.
	MaxAge   = time.Hour
	MaxAhead = 5 * time.Minute
	// planIDLength is that of a plan's ID.
	planIDLength = 12
)

// PlanID tells whether that can be the ID of a plan: it is part of a file's name.
func PlanID(id string) bool {
	return len(id) == planIDLength && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// Wish is what the operator says.
type Wish struct {
	Cluster  string   // its name, as it was typed
	Gone     []string // voters that are gone for good, by name or ID
	Survivor string   // another host than the most advanced, by name; empty for that
	At       time.Time
	ID       string // of the plan
	New      record.MemberID
}

// Loss is what one host would bring back.
type Loss struct {
	Facts  Facts
	Behind uint64 // entries that the most advanced has beyond it; at least one where its term is older
	Chosen bool
	No     string // why it cannot be the survivor
}

// Compare puts the facts side by side, the most advanced first: by the term of the last entry, then its index, as raft
// itself compares logs.
func Compare(all []Facts) []Loss {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y Facts) int {
		return cmp.Or(cmp.Compare(y.Log.Term, x.Log.Term), cmp.Compare(y.Log.Index, x.Log.Index),
			cmp.Compare(y.Log.Commit, x.Log.Commit), strings.Compare(x.Host, y.Host))
	})
	out := make([]Loss, 0, len(sorted))
	for _, f := range sorted {
		l := Loss{Facts: f}
		switch best := sorted[0].Log; {
		case f.Log.Empty:
			l.No = "it has no data"
		case f.learner():
			l.No = "it is a learner"
		case best.Index > f.Log.Index:
			l.Behind = best.Index - f.Log.Index
		case best.Term > f.Log.Term:
			l.Behind = 1
		}
		out = append(out, l)
	}
	if i := slices.IndexFunc(out, func(l Loss) bool { return l.No == "" }); i >= 0 {
		out[i].Chosen = true
	}
	return out
}

// learner tells whether the host's own member is listed as one that does not vote.
func (f Facts) learner() bool {
	for _, m := range append(slices.Clone(f.Log.Members), f.Members...) {
		if m.ID == f.Log.Member {
			return m.Learner
		}
	}
	return false
}

// doubt is one reason why no plan is made.
type doubt struct {
	name string
	of   func(all []Facts, w Wish) string
}

// doubts declares them, in the order in which they are told.
func doubts() []doubt {
	return []doubt{
		{"no facts, or too many", func(all []Facts, _ Wish) string {
			if len(all) == 0 || len(all) > MaxHosts {
				return fmt.Sprintf("there are facts of %d hosts, it may be 1 to %d", len(all), MaxHosts)
			}
			return ""
		}},
		{"a host sees a quorum", each(func(f Facts, _ Wish) string {
			if f.Quorum {
				return f.Host + " sees a quorum: nothing is to be recovered; see quorumctl status there"
			}
			return ""
		})},
		{"a host twice", twice},
		{"another cluster", anotherCluster},
		{"too old", each(func(f Facts, w Wish) string {
			age := w.At.Sub(f.Taken)
			if age > MaxAge || age < -MaxAhead {
				return fmt.Sprintf("the facts of %s are of %s, %s ago, over %s; take them anew: quorumctl recover "+
					"facts", f.Host, f.Taken.UTC().Format(time.RFC3339), age.Round(time.Second), MaxAge)
			}
			return ""
		})},
		{"no survivor", noSurvivor},
		{"a quorum could come back", couldComeBack},
		{"a voter is missing", missing},
		{"not the name", func(all []Facts, w Wish) string {
			if w.Cluster != all[0].Cluster {
				return fmt.Sprintf("the cluster is %q, what was typed is %q", all[0].Cluster, w.Cluster)
			}
			return ""
		}},
	}
}

func each(of func(Facts, Wish) string) func([]Facts, Wish) string {
	return func(all []Facts, w Wish) string {
		for _, f := range all {
			if text := of(f, w); text != "" {
				return text
			}
		}
		return ""
	}
}

func twice(all []Facts, _ Wish) string {
	seen := map[string]bool{}
	members := map[record.MemberID]string{}
	for _, f := range all {
		if seen[f.HostID] {
			return fmt.Sprintf("there are two facts of %s", f.Host)
		}
		if other := members[f.Log.Member]; other != "" && !f.Log.Empty {
			return fmt.Sprintf("%s and %s have data of the same member %s: one of them is a copy", other, f.Host,
				f.Log.Member)
		}
		seen[f.HostID], members[f.Log.Member] = true, f.Host
	}
	return ""
}

func anotherCluster(all []Facts, _ Wish) string {
	id := clusterOf(all)
	for _, f := range all {
		if f.Cluster != all[0].Cluster {
			return fmt.Sprintf("%s is of cluster %q, %s of %q", all[0].Host, all[0].Cluster, f.Host, f.Cluster)
		}
		if !f.Log.Empty && f.Log.Cluster != id {
			return fmt.Sprintf("the data of %s are of the cluster with the ID %s, others of %s", f.Host, f.Log.Cluster,
				id)
		}
	}
	return ""
}

// clusterOf gives the ID of the cluster that the first data are of.
func clusterOf(all []Facts) record.MemberID {
	for _, f := range all {
		if !f.Log.Empty {
			return f.Log.Cluster
		}
	}
	return 0
}

func noSurvivor(all []Facts, w Wish) string {
	_, err := survivor(all, w.Survivor)
	if err != nil {
		return err.Error()
	}
	return ""
}

// survivor gives the host that is to go on alone.
func survivor(all []Facts, name string) (Facts, error) {
	for _, l := range Compare(all) {
		switch {
		case name == "" && l.Chosen, name != "" && l.Facts.Host == name && l.No == "":
			return l.Facts, nil
		case name != "" && l.Facts.Host == name:
			return Facts{}, fmt.Errorf("%s cannot be the survivor: %s", name, l.No)
		}
	}
	if name != "" {
		return Facts{}, fmt.Errorf("%s cannot be the survivor: there are no facts of it", name)
	}
	return Facts{}, errors.New("no host has data of a voter: nothing can be brought back from these hosts")
}

// couldComeBack refuses a plan where the hosts that are there have a majority among them: they need to be started, and
// lose nothing.
func couldComeBack(all []Facts, w Wish) string {
	voters := Voters(all)
	there := 0
	for _, f := range all {
		if !f.Log.Empty && slices.ContainsFunc(voters, func(m Member) bool { return m.ID == f.Log.Member }) {
			there++
		}
	}
	if need := len(voters)/2 + 1; len(voters) > 0 && there >= need && w.Survivor == "" {
		return fmt.Sprintf("%d of %d voters have their data, %d are a quorum: start etcd on them, and nothing is "+
			"lost; if they cannot be started, name who is to go on alone with --survivor", there, len(voters), need)
	}
	return ""
}

// Voters gives those that the facts with the newest log list.
func Voters(all []Facts) []Member {
	var list []Member
	for _, l := range Compare(all) {
		for _, of := range [][]Member{l.Facts.Log.Members, l.Facts.Members} {
			if len(list) == 0 {
				list = slices.DeleteFunc(slices.Clone(of), func(m Member) bool { return m.Learner })
			}
		}
	}
	return list
}

// Missing gives the voters of which there are no facts.
func Missing(all []Facts) []Member {
	return slices.DeleteFunc(Voters(all), func(m Member) bool {
		return slices.ContainsFunc(all, func(f Facts) bool {
			return !f.Log.Empty && f.Log.Member == m.ID || m.PeerURL != "" && f.PeerURL == m.PeerURL
		})
	})
}

func missing(all []Facts, w Wish) string {
	if len(Voters(all)) == 0 {
		return "no host knows who the voters are: stop etcd on one of them (systemctl stop etcd) and take its facts " +
			"anew"
	}
	var open []string
	for _, m := range Missing(all) {
		if !slices.Contains(w.Gone, m.Name) && !slices.Contains(w.Gone, m.ID.String()) {
			open = append(open, cmp.Or(m.Name, m.ID.String()))
		}
	}
	if len(open) == 0 {
		return ""
	}
	slices.Sort(open) // the order of the list is that of random IDs
	return fmt.Sprintf("there are no facts of %s: take them there if the host can be reached, else make sure that it "+
		"never comes back as it is, and say so: --gone %s", strings.Join(open, " and "),
		strings.Join(append(slices.Clone(w.Gone), open...), ","))
}

// Doubt tells why no plan is made of these facts, or nothing.
func Doubt(all []Facts, w Wish) string {
	for _, d := range doubts() {
		if text := d.of(all, w); text != "" {
			return text
		}
	}
	return ""
}

// NewPlan makes the plan, or says why there is none.
func NewPlan(all []Facts, w Wish) (Plan, error) {
	if text := Doubt(all, w); text != "" {
		return Plan{}, errors.New("cannot plan the recovery: " + text)
	}
	chosen, err := survivor(all, w.Survivor)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Version: Version, ID: w.ID, Cluster: w.Cluster, Made: w.At.UTC(), Old: chosen.Log.Cluster, New: w.New,
		Survivor: chosen.HostID, Facts: all, Gone: orEmpty(w.Gone),
	}
	p.Checksum = checksum(p)
	return p, p.check()
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ReadPlan reads what quorumctl recover plan has written.
func ReadPlan(r io.Reader) (Plan, error) {
	var p Plan
	if err := decode(r, &p); err != nil {
		return p, fmt.Errorf("cannot read the plan: %w", err)
	}
	return p, p.check()
}

// check tells what is wrong with a plan that came from elsewhere.
func (p Plan) check() error {
	sum := p.Checksum
	p.Checksum = ""
	switch {
	case p.Version != Version:
		return fmt.Errorf("cannot read the plan: it is of version %d, this one knows %d", p.Version, Version)
	case sum != checksum(p):
		return errors.New("cannot read the plan: the checksum does not fit, the file was changed")
	case !PlanID(p.ID) || p.New == 0 || p.Old == 0 || p.New == p.Old || len(p.Facts) == 0 || len(p.Facts) > MaxHosts:
		return errors.New("cannot read the plan: it is none")
	case p.Of(p.Survivor) == nil || p.Of(p.Survivor).Log.Empty:
		return errors.New("cannot read the plan: it has no facts of its survivor")
	}
	for _, f := range p.Facts {
		if f.Checksum != f.Sealed().Checksum {
			return fmt.Errorf("cannot read the plan: the facts of %s were changed", f.Host)
		}
	}
	return nil
}

// Of gives the facts of a host; nil when the plan has none.
func (p Plan) Of(hostID string) *Facts {
	for i := range p.Facts {
		if p.Facts[i].HostID == hostID {
			return &p.Facts[i]
		}
	}
	return nil
}

// MaxPlanAge is how long after it was made a plan is obeyed.
const MaxPlanAge = 24 * time.Hour

// Refused tells why the host with these facts, which were taken just now, does not obey the plan; or nothing.
func (p Plan) Refused(now Facts, at time.Time) string {
	own := p.Of(now.HostID)
	age := at.Sub(p.Made)
	switch {
	case now.Cluster != p.Cluster:
		return fmt.Sprintf("it is for cluster %q, this host is of %q", p.Cluster, now.Cluster)
	case own == nil:
		return fmt.Sprintf("it was made without facts of %s", now.Host)
	case now.Quorum:
		return now.Host + " sees a quorum: nothing is to be recovered"
	case age > MaxPlanAge || age < -MaxAhead:
		return fmt.Sprintf("it was made %s ago, the limit is %s", age.Round(time.Second), MaxPlanAge)
	}
	return own.Same(now)
}
