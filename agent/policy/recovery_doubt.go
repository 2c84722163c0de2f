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

// The bounds of the facts that a plan is made from.
const (
	MaxRecoveryHosts = 32
	MaxFactsAge      = time.Hour
	MaxClockAhead    = 5 * time.Minute // how far a host's clock may be ahead of the planning host's
)

// RecoveryDoubt is a reason why no plan is made.
type RecoveryDoubt struct {
	Name   string
	Text   string // what was found
	Remedy string // what resolves it
}

// String returns the text and the remedy.
func (d RecoveryDoubt) String() string { return d.Text + ": " + d.Remedy }

// RecoveryPlan is the result of planning: the survivor, or the doubt that prevents a plan.
type RecoveryPlan struct {
	Survivor int // its index in the input
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

// recoveryDoubt declares a doubt. check returns what it found, or an empty text, and the value of {} in the remedy.
type recoveryDoubt struct {
	name   string
	check  func(all []HostRemains, w RecoveryChoice) (text, about string)
	remedy string
}

// recoveryDoubts returns all doubts in the order in which they are checked: each may rely on those before it.
func recoveryDoubts() []recoveryDoubt {
	return []recoveryDoubt{
		{
			"no facts, or too many", tooMany,
			"collect them from every reachable host: quorumctl recover collect",
		},
		{"a host sees a quorum", eachHost(seesQuorum), "see quorumctl status there"},
		{"a host twice", hostTwice, "pass one file per host"},
		{
			"clusters that etcd made by default", strayRemains, "if they contain no keys: stop etcd on {}, rename " +
				"the directory member in etcd.dataDir there, and collect the facts again; if no host has other " +
				"data, there is nothing to recover: quorumctl bootstrap on one host, or quorumctl recover plan with " +
				"--from-snapshot",
		},
		{"the same data twice", dataTwice, "omit the facts of the copy"},
		{"another cluster's name", otherName, "plan for one cluster at a time"},
		{"another cluster's data", otherData, "omit the facts of the other cluster"},
		{"too old", eachHost(factsTooOld), "collect them again with quorumctl recover collect"},
		{"the named survivor is missing", namedUnknown, "collect the facts there, or name another with --survivor"},
		{
			"the named survivor cannot continue",
			namedUnable,
			"name another with --survivor, or none for the most advanced",
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
			"a quorum could come back", couldComeBack, "start etcd on them and nothing is lost; if they cannot be " +
				"started, name the survivor with --survivor",
		},
		{
			"the voters are unknown", votersUnknown,
			"stop etcd on one of them (systemctl stop etcd) and collect its facts again",
		},
		{
			"an earlier plan is in force", planInForce,
			"continue it; or give it up there (quorumctl recover give-up) and collect its facts again",
		},
		{
			"an earlier plan may be carried out", planElsewhere,
			"start that host, give the plan up there (quorumctl recover give-up) and collect its facts again; or " +
				"make sure that it never starts again as it is, and confirm that: --kept-off {}",
		},
		{
			"a voter is missing", voterMissing, "collect them there if the host is reachable; otherwise make sure " +
				"that it never comes back as it is, and confirm that: --gone {}",
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
		return fmt.Sprintf("there are facts of %d hosts, the limits are 1 and %d", len(all), MaxRecoveryHosts), ""
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
			return fmt.Sprintf("%s and %s have data of the same member %x, one of them is a copy", other, r.Host,
				r.MemberID), ""
		}
		hosts[r.MemberID] = r.Host
	}
	return "", ""
}

func otherName(all []HostRemains, _ RecoveryChoice) (text, about string) {
	for _, r := range all {
		if r.Cluster != all[0].Cluster {
			return fmt.Sprintf("%s belongs to cluster %q, %s to %q", all[0].Host, all[0].Cluster, r.Host,
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
			return fmt.Sprintf("the data of %s belongs to the cluster with the ID %x, other data to %x", r.Host,
				r.ClusterID, id), ""
		}
	}
	return "", ""
}

func factsTooOld(r HostRemains) string {
	switch {
	case r.Age > MaxFactsAge:
		return fmt.Sprintf("the facts of %s are %s old, the limit is %s", r.Host, durationfmt.Seconds(r.Age),
			durationfmt.Text(MaxFactsAge))
	case r.Age < -MaxClockAhead:
		return fmt.Sprintf("the facts of %s were taken with a clock that is %s ahead, the limit is %s", r.Host,
			durationfmt.Seconds(-r.Age), durationfmt.Text(MaxClockAhead))
	}
	return ""
}

func namedUnknown(all []HostRemains, w RecoveryChoice) (text, about string) {
	switch {
	case w.Survivor == "" || named(all, w) >= 0:
		return "", ""
	case w.Snapshot:
		return w.Survivor + " cannot restore the snapshot, its facts are missing", ""
	}
	return w.Survivor + " cannot be the survivor, its facts are missing", ""
}

func namedUnable(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Survivor == "" || w.Snapshot {
		return "", ""
	}
	for _, s := range RankHosts(all) {
		if s.Excluded != "" && all[s.Index].Host == w.Survivor {
			return fmt.Sprintf("%s cannot be the survivor, %s", w.Survivor, s.Excluded), ""
		}
	}
	return "", ""
}

// dataLeft reports a voter's data that would be lost if a snapshot were restored: it is newer than every snapshot.
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

// couldComeBack reports whether the available hosts are a majority of the voters: starting them loses nothing.
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
	return fmt.Sprintf("%d of %d voters have their data, %d are a quorum", there, len(voters), need), ""
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
	slices.Sort(open) // the list is ordered by random IDs
	return "facts are missing from " + strings.Join(open, " and "),
		strings.Join(slices.Concat(w.Gone, open), ",")
}

func notTheName(all []HostRemains, w RecoveryChoice) (text, about string) {
	if w.Cluster == all[0].Cluster {
		return "", ""
	}
	return fmt.Sprintf("the cluster is %q, but %q was typed", all[0].Cluster, w.Cluster), ""
}
