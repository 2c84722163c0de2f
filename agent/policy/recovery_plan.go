// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// HostRemains holds a host's facts about what is left of a cluster on that host after quorum loss.
type HostRemains struct {
	HostID, Host string
	Cluster      string // the cluster's name
	PeerURL      string
	Age          time.Duration // the age of the facts; negative if the host's clock is ahead
	Quorum       bool          // the host observes a quorum
	Empty        bool          // its data directory holds no etcd data; otherwise the next fields describe the data
	ClusterID    uint64
	MemberID     uint64
	Term, Index  uint64         // term and index of the last entry of its log
	Commit       uint64         // the last entry known to be committed
	InData       []ListedMember // the member list in its data
	LastSeen     []ListedMember // the last member list that etcd returned to the host
	Plans        []KnownPlan    // plans that the host received and has not completed
}

// KnownPlan is an earlier plan that a host received.
type KnownPlan struct {
	ID, Survivor string        // Survivor is the name of the host that continues alone
	GivenUp      bool          // the host that received the plan has given it up
	Age          time.Duration // time since the host received the plan
}

// ListedMember is an entry of a member list that a host has stored.
type ListedMember struct {
	ID      uint64
	Name    string
	PeerURL string
	Learner bool
}

// RecoveryChoice is an operator's input for a plan.
type RecoveryChoice struct {
	Cluster  string   // the cluster's name, as typed
	Gone     []string // voters that never come back, by name or ID in hexadecimal
	KeptOff  []string // survivors of earlier plans, by name, that never start again as they are
	Survivor string   // the host that continues alone, by name; empty for the most advanced
	Snapshot bool     // the survivor restores a snapshot instead of using its data
}

// RankedHost is a host in the order of RankHosts.
type RankedHost struct {
	Index    int    // the host's index in the input
	Behind   uint64 // entries behind the most advanced host; at least 1 if this host's term is older
	Chosen   bool   // the host would be the survivor
	Excluded string // why the host cannot be the survivor; empty if it can
}

// RankHosts orders hosts, the most advanced first: by the term of the last entry, then its index, as raft compares
// logs.
func RankHosts(all []HostRemains) []RankedHost {
	out, voters := byLog(all), RecoveryVoters(all)
	for i := range out {
		switch r, best := all[out[i].Index], all[out[0].Index]; {
		case r.Empty:
			out[i].Excluded = "it has no data"
		case r.learner():
			out[i].Excluded = "it is a learner"
		case len(voters) > 0 && !slices.ContainsFunc(voters, r.hasDataOf):
			out[i].Excluded = "it is no longer a voter"
		case best.Index > r.Index:
			out[i].Behind = best.Index - r.Index
		case best.Term > r.Term:
			out[i].Behind = 1
		}
	}
	if i := slices.IndexFunc(out, canContinue); i >= 0 {
		out[i].Chosen = true
	}
	return out
}

// byLog returns the hosts, the one with the most advanced log first.
func byLog(all []HostRemains) []RankedHost {
	out := make([]RankedHost, 0, len(all))
	for i := range all {
		out = append(out, RankedHost{Index: i})
	}
	slices.SortStableFunc(out, func(a, b RankedHost) int {
		x, y := all[a.Index], all[b.Index]
		return cmp.Or(cmp.Compare(y.Term, x.Term), cmp.Compare(y.Index, x.Index), cmp.Compare(y.Commit, x.Commit),
			strings.Compare(x.Host, y.Host))
	})
	return out
}

// hasDataOf reports whether the data on this host is that member's.
func (r HostRemains) hasDataOf(m ListedMember) bool { return !r.Empty && r.MemberID == m.ID }

func canContinue(s RankedHost) bool { return s.Excluded == "" }

// learner reports whether the host's own member is listed as a learner.
func (r HostRemains) learner() bool {
	for _, m := range slices.Concat(r.InData, r.LastSeen) {
		if m.ID == r.MemberID {
			return m.Learner
		}
	}
	return false
}

// RecoveryVoters returns the voters listed by the host that has the most advanced log of those that list any; nil if no
// host does.
func RecoveryVoters(all []HostRemains) []ListedMember {
	for _, s := range byLog(all) {
		for _, list := range [][]ListedMember{all[s.Index].InData, all[s.Index].LastSeen} {
			voters := slices.DeleteFunc(slices.Clone(list), func(m ListedMember) bool { return m.Learner })
			if len(voters) > 0 {
				return voters
			}
		}
	}
	return nil
}

// RecoveryMissing returns the voters for which the facts of their hosts are missing.
func RecoveryMissing(all []HostRemains) []ListedMember {
	return slices.DeleteFunc(RecoveryVoters(all), func(m ListedMember) bool {
		return slices.ContainsFunc(all, func(r HostRemains) bool {
			return r.hasDataOf(m) || m.PeerURL != "" && r.PeerURL == m.PeerURL
		})
	})
}

// survivor returns the index of the host that continues alone. It must be called only if no doubt prevents a plan. If a
// snapshot is restored and no host is named, it prefers a host without data.
func survivor(all []HostRemains, w RecoveryChoice) int {
	if w.Survivor != "" {
		return named(all, w)
	}
	list := RankHosts(all)
	if !w.Snapshot {
		return list[slices.IndexFunc(list, canContinue)].Index
	}
	slices.SortStableFunc(list, func(a, b RankedHost) int {
		x, y := all[a.Index], all[b.Index]
		switch {
		case x.Empty == y.Empty:
			return strings.Compare(x.Host, y.Host)
		case x.Empty:
			return -1
		}
		return 1
	})
	return list[0].Index
}

// named returns the index of the host that an operator has named, or -1.
func named(all []HostRemains, w RecoveryChoice) int {
	return slices.IndexFunc(all, func(r HostRemains) bool { return r.Host == w.Survivor })
}

// Limits on the facts from which a plan is made.
const (
	MaxRecoveryHosts = 32
	MaxFactsAge      = time.Hour
	MaxClockAhead    = 5 * time.Minute // how far a host's clock may be ahead of the planning host's
)

// RecoveryDoubt is a reason why no plan is made.
type RecoveryDoubt struct {
	Name   string
	Text   string // the cause of the doubt
	Remedy string // instructions that resolve it
}

// String returns the text and the remedy.
func (d RecoveryDoubt) String() string { return d.Text + ": " + d.Remedy }

// RecoveryPlan is the result of planning: the survivor, or the doubt that prevents a plan.
type RecoveryPlan struct {
	Survivor int // the survivor's index in the input
	Doubt    *RecoveryDoubt
}

// PlanRecovery decides whether a cluster may be recovered, and from which host's data.
func PlanRecovery(all []HostRemains, w RecoveryChoice) RecoveryPlan {
	for _, d := range recoveryDoubts() {
		if text, about := d.check(all, w); text != "" {
			return RecoveryPlan{-1, &RecoveryDoubt{d.name, text, strings.ReplaceAll(d.remedy, "{}", about)}}
		}
	}
	return RecoveryPlan{Survivor: survivor(all, w)}
}

// recoveryDoubt declares a doubt about a plan. check returns why the doubt applies, empty if it does not, and what
// replaces {} in the remedy.
type recoveryDoubt struct {
	name   string
	check  func(all []HostRemains, w RecoveryChoice) (text, about string)
	remedy string
}

// recoveryDoubts returns all doubts in the order in which they are checked: each check may rely on those before it.
func recoveryDoubts() []recoveryDoubt {
	return []recoveryDoubt{
		{
			"no facts, or too many", tooMany,
			"collect them from every reachable host: quorumctl recover collect",
		},
		{"a host sees a quorum", eachHost(seesQuorum), "see quorumctl status there"},
		{"a host twice", hostTwice, "pass one file per host"},
		{
			"clusters that etcd made by default", strayRemains, "if it contains no keys, stop etcd on {}, rename " +
				"the directory member in etcd.dataDir there, and collect the facts again; if no host has other " +
				"data, there is nothing to recover: quorumctl bootstrap on one host, or quorumctl recover plan with " +
				"--from-snapshot",
		},
		{"the same data twice", dataTwice, "omit the facts of the copy"},
		{"another cluster's name", otherName, "plan for one cluster at a time"},
		{"another cluster's data", otherData, "omit the facts of the other cluster"},
		{
			"too old", eachHost(factsTooOld),
			"collect them again with quorumctl recover collect; if that host's clock is ahead, correct it first",
		},
		{
			"the named survivor is missing", namedUnknown,
			"collect its facts, or name another host with --survivor",
		},
		{
			"the named survivor cannot continue",
			namedUnable,
			"name another host with --survivor, or omit --survivor to use the most advanced one",
		},
		{
			"data is left", dataLeft, "plan without --from-snapshot to lose less; if this data is unusable, name " +
				"the host that restores the snapshot: --survivor {}",
		},
		{
			"no host can continue", noSurvivor,
			"collect facts from other hosts, or plan with a snapshot: --from-snapshot",
		},
		{
			"a quorum could come back", couldComeBack, "start etcd on their hosts, and nothing is lost; if that " +
				"is impossible, name the survivor with --survivor",
		},
		{
			"the voters are unknown", votersUnknown,
			"stop etcd (systemctl stop etcd) on a host that has data, and collect its facts again: while etcd runs, " +
				"quorumd cannot read the list of members in its data",
		},
		{
			"an earlier plan is in force", planInForce,
			"continue it; or give it up there (quorumctl recover give-up) and collect that host's facts again",
		},
		{
			"an earlier plan may be carried out", planElsewhere,
			"start that host, give the plan up there (quorumctl recover give-up) and collect its facts again; or " +
				"make sure that it never starts again with its present data, and confirm that: --kept-off {}",
		},
		{
			"a voter is missing", voterMissing, "collect them from each host that is reachable; make sure that " +
				"the others never come back with their present data, and confirm that: --gone {}",
		},
		{"not the name", notTheName, "type the name of the cluster to recover"},
	}
}

func eachHost(of func(HostRemains) string) func([]HostRemains, RecoveryChoice) (string, string) {
	return func(all []HostRemains, _ RecoveryChoice) (string, string) {
		for _, r := range all {
			if text := of(r); text != "" {
				return text, r.Host
			}
		}
		return "", ""
	}
}

func tooMany(all []HostRemains, _ RecoveryChoice) (text, about string) {
	if len(all) == 0 || len(all) > MaxRecoveryHosts {
		return fmt.Sprintf("there are facts of %d hosts; the limits are 1 and %d", len(all), MaxRecoveryHosts), ""
	}
	return "", ""
}

func seesQuorum(r HostRemains) string {
	if r.Quorum {
		return r.Host + " sees a quorum, so there is nothing to recover"
	}
	return ""
}

func hostTwice(all []HostRemains, _ RecoveryChoice) (text, about string) {
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.HostID] {
			return "the facts of " + r.Host + " were passed twice", ""
		}
		seen[r.HostID] = true
	}
	return "", ""
}

func dataTwice(all []HostRemains, _ RecoveryChoice) (text, about string) {
	hosts := map[uint64]string{} // by member
	for _, r := range all {
		if r.Empty {
			continue
		}
		if other := hosts[r.MemberID]; other != "" {
			return fmt.Sprintf("%s and %s have data of the same member %x: one of them is a copy", other, r.Host,
				r.MemberID), ""
		}
		hosts[r.MemberID] = r.Host
	}
	return "", ""
}

func otherName(all []HostRemains, _ RecoveryChoice) (text, about string) {
	for _, r := range all {
		if r.Cluster != all[0].Cluster {
			return fmt.Sprintf("%s belongs to cluster %q, but %s to %q", all[0].Host, all[0].Cluster, r.Host,
				r.Cluster), ""
		}
	}
	return "", ""
}

func otherData(all []HostRemains, _ RecoveryChoice) (text, about string) {
	var id uint64
	for _, r := range all {
		switch {
		case r.Empty:
		case id == 0:
			id = r.ClusterID
		case r.ClusterID != id:
			return fmt.Sprintf("the data of %s belongs to the cluster with the ID %x, but another host's to %x", r.Host,
				r.ClusterID, id), ""
		}
	}
	return "", ""
}

func factsTooOld(r HostRemains) string {
	switch {
	case r.Age > MaxFactsAge:
		return fmt.Sprintf("the facts of %s are %s old; the limit is %s", r.Host, durationfmt.Seconds(r.Age),
			durationfmt.Text(MaxFactsAge))
	case r.Age < -MaxClockAhead:
		return fmt.Sprintf("the facts of %s were taken with a clock that is %s ahead; the limit is %s", r.Host,
			durationfmt.Seconds(-r.Age), durationfmt.Text(MaxClockAhead))
	}
	return ""
}

func namedUnknown(all []HostRemains, w RecoveryChoice) (text, about string) {
	switch {
	case w.Survivor == "" || named(all, w) >= 0:
		return "", ""
	case w.Snapshot:
		return w.Survivor + " cannot restore the snapshot: its facts are missing", ""
	}
	return w.Survivor + " cannot be the survivor: its facts are missing", ""
}

func namedUnable(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Survivor == "" || w.Snapshot {
		return "", ""
	}
	for _, s := range RankHosts(all) {
		if s.Excluded != "" && all[s.Index].Host == w.Survivor {
			return fmt.Sprintf("%s cannot be the survivor: %s", w.Survivor, s.Excluded), ""
		}
	}
	return "", ""
}

// dataLeft reports a voter's data that would be lost if a snapshot were restored; it is normally newer than every
// snapshot. It reports nothing if the operator has named the host that restores the snapshot.
func dataLeft(all []HostRemains, w RecoveryChoice) (text, about string) {
	if !w.Snapshot || w.Survivor != "" {
		return "", ""
	}
	for _, s := range RankHosts(all) {
		if r := all[s.Index]; s.Excluded == "" {
			return fmt.Sprintf("%s has the data of a voter, up to entry %d", r.Host, r.Index), r.Host
		}
	}
	return "", ""
}

func noSurvivor(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Snapshot || slices.ContainsFunc(RankHosts(all), canContinue) {
		return "", ""
	}
	return "no host has a voter's data, so nothing can be recovered from these hosts", ""
}

// couldComeBack reports whether the available hosts hold the data of a majority of the voters: starting etcd on them
// restores the quorum without losing data. It does not apply if the operator has named the survivor.
func couldComeBack(all []HostRemains, w RecoveryChoice) (text, about string) {
	voters, there := RecoveryVoters(all), 0
	for _, r := range all {
		if slices.ContainsFunc(voters, r.hasDataOf) {
			there++
		}
	}
	need := Quorum(len(voters))
	if len(voters) == 0 || there < need || w.Survivor != "" {
		return "", ""
	}
	return fmt.Sprintf("%d of %d voters have their data, and %d are a quorum", there, len(voters), need), ""
}

func votersUnknown(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Snapshot || len(RecoveryVoters(all)) > 0 {
		return "", ""
	}
	return "no host lists the voters", ""
}

func voterMissing(all []HostRemains, w RecoveryChoice) (text, about string) {
	var open []string
	for _, m := range RecoveryMissing(all) {
		id := strconv.FormatUint(m.ID, 16)
		if !slices.Contains(w.Gone, m.Name) && !slices.Contains(w.Gone, id) {
			open = append(open, cmp.Or(m.Name, id))
		}
	}
	if len(open) == 0 {
		return "", ""
	}
	slices.Sort(open) // by name: the list is sorted by member ID, which is random
	return "facts are missing from " + strings.Join(open, " and "),
		strings.Join(slices.Concat(w.Gone, open), ",")
}

func notTheName(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Cluster == all[0].Cluster {
		return "", ""
	}
	return fmt.Sprintf("the cluster is %q, but %q was typed", all[0].Cluster, w.Cluster), ""
}
