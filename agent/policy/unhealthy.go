// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A voter is unhealthy if its own host reports an unhealthy state and the deciding host has measured evidence of it:
// the fsync metrics of the voter's etcd, its lag, or its silence. Either alone may be wrong: a probe may be kept from
// writing, or a network path may be bad. A host record alone is never evidence, because it may be forged.
//
// Both must be current. A health state improves long after writes are fast again. In that time the host record reports
// that the host recovers, and the grace period restarts. The fsync metrics are evidence only with a slow fsync in every
// minute.

// UnhealthySince is for how long a host's own record has reported that the host harms the cluster.
type UnhealthySince struct {
	// For is how long it has been SLOW or worse, in every minute of that time; 0 if it is not.
	For      time.Duration
	HangsFor time.Duration // the same for STALLED or FAILED
}

// Fsyncs is what the metrics of a member's etcd report about its fsyncs, as read by the deciding host.
type Fsyncs struct {
	Known  bool
	Absent string        // why they are unknown; empty if they were not read
	Age    time.Duration // of the newest reading
	// P99 is the p99 of the fsyncs of the last minutes, if it exceeds that of a healthy disk; otherwise 0.
	P99 time.Duration
	// SlowFor is for how long there has been a slow fsync in every minute; 0 if there is none now.
	SlowFor time.Duration
}

// hangGrace is how long a voter's disk must hang or fail before another host may replace the voter, even if the grace
// period for a slow disk is longer.
const hangGrace = time.Minute

// healthyReportDelay is the longest time until a host reports that its writes are fast again. If it has reported an
// unhealthy state for the grace period and this long, the state lasted for the grace period.
const healthyReportDelay = 90 * time.Second

// unconfirmed is why a voter does not count as unhealthy if only its own host record reports that.
const unconfirmed = "only its own host record reports it"

// UnhealthyVoter is a voter that is unhealthy, by its own report and by evidence.
type UnhealthyVoter struct {
	Member   Member
	State    health.State
	For      time.Duration
	Evidence string // as text
	// GraceLeft is how long it takes until another host may replace it; 0 if it may now, or if voters are not replaced
	// automatically.
	GraceLeft time.Duration
	// Held is why it is not replaced; empty if it will be.
	Held        string
	Replacement string // the host that is replacing it; empty if none is yet
	// Surplus reports that there is a surplus voter, so this one is removed without a replacement.
	Surplus bool
}

// reportedUnhealthy returns the report and evidence that make a voter unhealthy, by the last observations, or why it is
// not.
func (v View) reportedUnhealthy(m Member) (s UnhealthyVoter, why string) {
	h, present := v.hostOf(m)
	switch {
	case m.Learner:
		return s, "it is not a voter"
	case !present:
		return s, "no quorumd on its host reports its health state"
	case Unhealthy(h.Health) && h.Recovers:
		return s, fmt.Sprintf("it still reports %s, but its writes are fast again", h.Health)
	case !Unhealthy(h.Health) || h.UnhealthySince.For == 0:
		return s, "it is " + h.Health.String() + " by its own report"
	case !blocks(h.Health, h.Ungated, health.Joins):
		return s, "no finding behind its health state blocks joins"
	case !h.Manage:
		return s, "its quorumd only observes"
	case h.InOperation, v.Op.info().down && v.Op.names(h, m):
		return s, "it is in an operation"
	}
	text, since := v.evidence(m)
	if text == "" {
		return s, unconfirmed
	}
	s = UnhealthyVoter{Member: m, State: h.Health, For: h.UnhealthySince.For, Evidence: text}
	if v.Limits.UnhealthyGrace > 0 {
		s.GraceLeft = max(0, v.graceLeft(h), v.Limits.LockTTL-since)
	}
	return s, ""
}

// graceLeft returns for how much longer a host's health state must last before its voter may be replaced.
func (v View) graceLeft(h Host) time.Duration {
	left := v.Limits.UnhealthyGrace + healthyReportDelay - h.UnhealthySince.For
	if h.UnhealthySince.HangsFor > 0 {
		left = min(left, hangGrace-h.UnhealthySince.HangsFor)
	}
	return left
}

// silent reports whether a voter whose own host reports a hanging disk answers no linearizable read. Silence alone is
// not evidence: this host may be cut off while a slow voter still serves others.
func (v View) silent(m Member) bool {
	h, present := v.hostOf(m)
	return !m.Live && present && h.UnhealthySince.HangsFor > 0
}

// evidence returns the evidence that has lasted longest that a voter is unhealthy, and for how long it has lasted.
func (v View) evidence(m Member) (text string, since time.Duration) {
	if v.silent(m) && m.DownFor > since {
		text, since = "it answers no linearizable read, for "+durationfmt.Seconds(m.DownFor), m.DownFor
	}
	if m.BehindFor > since {
		text = fmt.Sprintf("it is %d entries behind the leader", m.Lag)
		since = m.BehindFor
	}
	if f := m.Fsyncs; f.Known && f.SlowFor > since {
		text = fmt.Sprintf("99 of 100 syncs of its etcd's own log take up to %s", durationfmt.Text(f.P99))
		since = f.SlowFor
	}
	return text, since
}

// evidence describes the fsync metrics of a voter that do not confirm its host's report.
func (f Fsyncs) evidence() string {
	switch {
	case f.Known:
		return fmt.Sprintf("%s ago its etcd's metrics showed a minute without a slow fsync", durationfmt.Seconds(f.Age))
	case f.Absent != "":
		return "its etcd's metrics cannot be read: " + f.Absent
	}
	return "its etcd's metrics have not been read yet"
}

// unhealthyFor is reportedUnhealthy for decisions: it ignores observations of earlier rounds.
func (v View) unhealthyFor(m Member) (UnhealthyVoter, string) {
	if !v.Cluster.Reachable || !v.Cluster.Fresh || v.foreign() || v.Resting && !v.HostsFresh {
		return UnhealthyVoter{}, "the cluster was not observed in this round"
	}
	return v.reportedUnhealthy(m)
}

// isUnhealthy reports whether a voter has been unhealthy for so long that another host may replace it.
func (v View) isUnhealthy(m Member) bool {
	s, why := v.unhealthyFor(m)
	return v.Limits.UnhealthyGrace > 0 && why == "" && s.GraceLeft == 0
}

// UnhealthyVoters returns the voters that are unhealthy by the last observations, and what happens to each.
func UnhealthyVoters(v View) []UnhealthyVoter {
	if !v.Cluster.Reachable || v.foreign() {
		return nil
	}
	var all []UnhealthyVoter
	for m := range v.Cluster.voters() {
		s, why := v.reportedUnhealthy(m)
		if why != "" {
			continue
		}
		s.Surplus = v.hasSurplus()
		if s.Held = v.unhealthyHeld(m); v.Op.replacesMember(m) {
			s.Held, s.Replacement = "", v.Op.HostName
		}
		all = append(all, s)
	}
	return all
}

// Text describes the voter's state, and what happens next and when.
func (s UnhealthyVoter) Text(grace time.Duration) string {
	text := fmt.Sprintf("%s has been %s for %s by its own report, and %s", s.Member.label(), s.State,
		durationfmt.Seconds(s.For), s.Evidence)
	return text + fate(s.Surplus, s.Replacement, s.Held, s.GraceLeft, grace, "")
}

// unhealthyHeld returns why no host replaces an unhealthy voter; empty if one may.
func (v View) unhealthyHeld(m Member) string {
	if why := v.repairBlocked("repair.unhealthy", v.Limits.UnhealthyGrace); why != "" {
		return why
	}
	if text, several := v.severalImpaired(v.strained(m)); several {
		return text
	}
	if r, holds := vetoed(v, vetoRepairsUnreadable, vetoRepairsSpent); holds {
		return r.Text
	}
	if r, holds := vetoed(v, vetoReplaceAtRisk); holds && v.isUnhealthy(m) {
		return r.Text
	}
	switch voters, _ := v.Cluster.Counts(); {
	case v.hasSurplus():
		return ""
	case !mayJoinAsExtra(voters, v.Target.Voters):
		return fmt.Sprintf("there are %d voters, and %d are configured", voters, v.Target.Voters)
	}
	return v.noReplacement(m)
}

// voterUnhealthy reports whether voters are unhealthy.
func voterUnhealthy(v View) (string, bool) {
	var all []string
	for _, s := range UnhealthyVoters(v) {
		all = append(all, s.Text(v.Limits.UnhealthyGrace))
	}
	return strings.Join(all[:min(len(all), mostNamed)], "; "), len(all) > 0
}

// voterSuspect reports whether voters have reported themselves unhealthy for the whole grace period, without other
// evidence. They are not replaced, and operators must be able to see why.
func voterSuspect(v View) (string, bool) {
	if !v.Cluster.Reachable || v.foreign() || v.Limits.UnhealthyGrace == 0 {
		return "", false
	}
	var all []string
	for m := range v.Cluster.voters() {
		h, _ := v.hostOf(m)
		if _, why := v.reportedUnhealthy(m); why != unconfirmed || v.graceLeft(h) > 0 || v.Op.replacesMember(m) {
			continue
		}
		before := fmt.Sprintf("its etcd counts a slow fsync in every minute, or it is more than %d entries behind the "+
			"leader", v.Limits.PromoteLag)
		if h.UnhealthySince.HangsFor > 0 {
			before += ", or it answers no linearizable read"
		}
		all = append(all, fmt.Sprintf("%s has been %s for %s by its own host record alone: %s; no host replaces it "+
			"unless %s", m.label(), h.Health, durationfmt.Seconds(h.UnhealthySince.For), m.Fsyncs.evidence(), before))
	}
	return strings.Join(all[:min(len(all), mostNamed)], "; "), len(all) > 0
}
