// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A slow leader leads forever: etcd replaces only a leader that stops sending heartbeats. So if the health state of a
// leader's host rules out leading, its agent transfers leadership to a voter that may lead. A transfer costs no quorum.
// It needs no lock: writing the lock would require the slow leader.
//
// The other hosts are judged by their published health states. The transfer waits, because a host that became unhealthy
// at the same time needs time to publish that; otherwise leadership would move from one slow disk to the next. The last
// record of an agent that has exited is used until it expires.
//
// If the disk is far too slow, no linearizable read returns in time on any host. Then the leader's agent reads from its
// own member: no host has newer data while a quorum reports that it follows that member. In that case the other hosts
// need longer to publish their health states.
//
// A leader whose only problem is slow writes transfers leadership only to a voter with clearly better writes: at least
// 1.5 times faster by their mean, median or 90th percentile, or with at most a third as many slow episodes. In
// addition, its mean must not be higher, and its 90th percentile not clearly higher. Smaller differences mean nothing,
// because a finding covers several minutes and two disks of the same model differ by chance. While the leader's disk is
// as fast as usual except for a few writes, the factor is 3 instead of 1.5. Slow writes that are usual at this hour
// move no leadership at all. A voter without a recent measurement is no target. If the leader's writes hang or fail,
// its etcd answers no request, or no read returns through it in time, nothing is compared: such a leader serves no
// client, no measurement can be exchanged through it, and any voter that may lead is better.
//
// Leadership does not circulate: it only moves from a host whose health state rules out leading to one whose state
// allows it, and the wait doubles with each further transfer in a row. A failed attempt moves no leadership, so the
// next attempt follows sooner. Each further attempt waits twice as long as the one before.

// LeadershipTransfers is this agent's view of its own member's leadership, and of the transfers that it has requested.
type LeadershipTransfers struct {
	LeadsFor time.Duration // how long this host's member has led without a break; 0 if it does not lead
	UnfitFor time.Duration // for how long UnfitNow has been true without a break; 0 if it is false
	LastFor  time.Duration // time since this agent last requested a transfer; if it never has, since its first round
	InRow    int           // how many transfers this agent has requested in a row: see NextInRow
}

// stepDownDoublings limits the wait for another attempt to 32 times TransferInterval.
const stepDownDoublings = 5

// pace returns how long after the last transfer the next one may follow.
func (g LeadershipTransfers) pace(l Limits) time.Duration {
	longest, before := l.TransferInterval<<stepDownDoublings, max(g.InRow-1, 0)
	if g.InRow == 0 || g.LeadsFor <= g.LastFor {
		return min(l.TransferInterval<<min(before, stepDownDoublings), longest)
	}
	wait := min(l.Settle, l.TransferInterval) // the last attempt failed
	for ; before > 0 && wait < longest; before-- {
		wait *= 2
	}
	return min(wait, longest)
}

// NextInRow returns what InRow would be after another transfer now. The count expires after twice the longest wait.
func (g LeadershipTransfers) NextInRow(l Limits) int {
	if g.LastFor > l.TransferInterval<<(stepDownDoublings+1) {
		return 1
	}
	return g.InRow + 1
}

// leading returns the view in which this host judges its leadership: its own member's view if that was read, otherwise
// v.
func (v View) leading() View {
	if v.Led == nil {
		return v
	}
	return *v.Led
}

// stepDown transfers leadership if this host leads although its health state rules that out, unless a veto applies.
// While linearizable reads fail, the first reason is the slow leader, not the lack of a quorum that it causes.
func stepDown(view View) (Decision, bool) {
	v := view.leading()
	if !leadsBadly(v) {
		return Decision{}, false
	}
	if len(against(v, stepDownVetoes())) > 0 {
		r, slow := leaderSlow(view)
		if _, turn := ownOperationDue(v); !slow || turn || !v.Cluster.Unread {
			return Decision{}, false
		}
		return Decision{Reasons: append([]Reason{r}, waitForCluster(view).Reasons...)}, true
	}
	to, _ := betterVoter(v)
	return do(Step{Kind: StepLeaderStepsDown, MemberID: to.ID, Why: "to " + to.label() + ": " + v.leaderText()}), true
}

// stepDownVetoes returns the conditions that keep an unhealthy leader from transferring leadership, in order of
// precedence.
func stepDownVetoes() []veto {
	return []veto{
		vetoIdentityConflict(),
		vetoOwnOperationDue(),
		vetoNotFollowed(),
		vetoAllUnhealthy(),
		vetoNoneBetter(),
		vetoSteppedDown(),
	}
}

// leaderSlow returns what keeps this host from transferring leadership although its health state rules out leading, and
// whether there is such a reason. It ignores identity conflicts and this host's own operation.
func leaderSlow(v View) (Reason, bool) {
	if v = v.leading(); !leadsBadly(v) {
		return Reason{}, false
	}
	return vetoed(v, vetoNotFollowed, vetoAllUnhealthy, vetoNoneBetter, vetoSteppedDown)
}

// transferDueIn returns the time until leadership may be transferred, provided that only this wait prevents the
// transfer; zero or less otherwise.
func transferDueIn(v View) time.Duration {
	if v = v.leading(); !leadsBadly(v) || len(against(v, stepDownVetoes())) != 1 {
		return 0
	}
	return v.tooSoonFor()
}

// TransfersLeadershipSoon reports whether this host transfers its leadership before a read of the cluster through the
// slow leader would return, if nothing changes: such a read would only delay the transfer.
func TransfersLeadershipSoon(v View) bool {
	due := transferDueIn(v)
	return due > 0 && due <= v.Limits.HealthDelay
}

// notFollowed reports whether too few voters report that they follow this host's member: another member may lead by
// now, and this one's data may be old.
func notFollowed(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	if !v.Cluster.Led || live >= Quorum(voters) {
		return "", false
	}
	return fmt.Sprintf("%s, by its own report, but of %d voters only %d follow it, and %d must", v.leaderText(), voters,
		live, Quorum(voters)), true
}

// leaderSlowText returns the text of the reason that leaderSlow returns, if the code of that reason is LeaderSlow.
func leaderSlowText(v View) (string, bool) {
	r, holds := leaderSlow(v)
	return r.Text, holds && r.Code == LeaderSlow
}

// leadsBadly reports whether this host's member leads although its health state rules that out. A host of unknown
// health keeps leading.
func leadsBadly(v View) bool {
	m, listed := v.member()
	return v.Cluster.Reachable && !v.foreign() && listed && m.Leader && !m.Learner && UnfitToLead(v.Health)
}

// UnfitToLead reports whether a host with that health state should not lead. Slow writes that are usual at this hour do
// not rule out leading, unless the state is STALLED or FAILED. Nor does an etcd that did not answer requests for a
// while, but answers again: a transfer would come too late.
func UnfitToLead(h Health) bool {
	usual := h.Habitual && h.SlowWrites && !hangs(h.State)
	return (h.State == health.Warm || Unhealthy(h.State)) && h.blocks(health.Leadership) && !usual && !h.AnswersAgain
}

// UnfitNow reports whether a host should not lead. It is false if slow writes are the only reason, the writes are fast
// again, and the state is neither STALLED nor FAILED.
func UnfitNow(h Health) bool {
	return UnfitToLead(h) && (!h.SlowWrites || !h.FastAgain || hangs(h.State))
}

// leaderText describes this host as a leader, with its health state.
func (v View) leaderText() string {
	return fmt.Sprintf("%s leads and is %s (%s)", v.Self.Name, v.Health.State, v.Health.Text)
}

// ownOperationDue reports whether this host is in an operation, even one whose record is gone, or is about to begin
// one. Such an operation transfers leadership itself.
func ownOperationDue(v View) (string, bool) {
	return "this host is in an operation, or about to begin one",
		v.Lock.Mine || v.Op != nil && v.Op.Host == v.Self.ID ||
			v.Asked != nil && (v.Asked.RecordDeleted || v.Asked.Stopped)
}

// allUnhealthy reports whether all voters are unhealthy together: the cause is shared, and a transfer would not help.
func allUnhealthy(v View) (string, bool) {
	others := 0
	for m := range v.Cluster.voters() {
		if m.PeerURL == v.Self.PeerURL {
			continue
		}
		if h, present := v.hostOf(m); !m.Live || !present || !Unhealthy(h.Health) {
			return "", false
		}
		others++
	}
	return v.leaderText() + ", and all other voters are unhealthy as well: leadership stays here",
		others > 0 && Unhealthy(v.Health.State)
}

// noneBetter reports whether there is no voter to transfer leadership to. The text states the reason for each other
// voter.
func noneBetter(v View) (string, bool) {
	if _, found := betterVoter(v); found {
		return "", false
	}
	var why []string
	none := ", and no voter is better: "
	for m := range v.Cluster.voters() {
		if m.PeerURL == v.Self.PeerURL {
			continue
		}
		text := v.notBetter(m)
		if h, _ := v.hostOf(m); text == v.notFaster(h) {
			none = fmt.Sprintf(", and no other voter is at least %.10g times faster: ", v.Health.margin())
		}
		why = append(why, m.label()+" "+text)
	}
	if len(why) == 0 {
		why = []string{"it is the only one"}
	}
	return v.leaderText() + none + strings.Join(why, ", "), true
}

// tooSoonAgain reports whether this host requested a transfer, began to lead, or became unfit to lead too recently: the
// other hosts must publish their health states first.
func tooSoonAgain(v View) (string, bool) {
	left := v.tooSoonFor()
	if left <= 0 {
		return "", false
	}
	text := v.leaderText()
	if to, found := betterVoter(v); found {
		text += fmt.Sprintf("; it transfers leadership to %s in %s", to.label(), durationfmt.Tenths(left))
	}
	if v.Failed.Kind == StepLeaderStepsDown {
		text += "; etcd refused the last attempt: " + v.Failed.Text
	}
	return text, true
}

// tooSoonFor returns the time until leadership may be transferred again; zero or less if it may be now.
func (v View) tooSoonFor() time.Duration {
	g, others := v.LeadershipTransfers, v.Limits.Settle
	if v.Cluster.Unread {
		others = max(others, v.Limits.HealthDelay)
	}
	if v.comparesWrites() && !v.Health.Urgent {
		others = max(others, v.Limits.TransferInterval) // most slow periods soon end by themselves
	}
	return max(g.pace(v.Limits)-g.LastFor, v.Limits.Settle-g.LeadsFor, others-g.UnfitFor)
}

// betterVoter returns the best voter that may take over leadership from this host.
func betterVoter(v View) (Member, bool) {
	return bestVoterOf(v, func(m Member) bool { return m.PeerURL != v.Self.PeerURL && v.notBetter(m) == "" })
}

// notBetter returns why leadership is not transferred to a voter; empty if it may be.
func (v View) notBetter(m Member) string {
	if !m.Live && v.Cluster.Led {
		return "does not follow it"
	}
	if r := v.againstLeader(m); r != nil {
		return r.Text
	}
	h, _ := v.hostOf(m)
	return v.notFaster(h)
}

// writesOldest is the maximum age of a host's write measurement. While the leader is slow, a host soon publishes a
// changed measurement, and an unchanged one every ten minutes (see diskrecord).
const writesOldest = 15 * time.Minute

// comparesWrites reports whether slow writes alone keep this host from leading, and its etcd still serves requests.
func (v View) comparesWrites() bool {
	return v.Health.SlowWrites && !hangs(v.Health.State) && !v.Cluster.Unread
}

// hangs reports whether a health state means that the disk completes no writes, or that etcd answers no requests.
func hangs(s health.State) bool { return s == health.Stalled || s == health.Failed }

// figuresOldest is the maximum age of a host's write figures. A host soon publishes changed ones, and unchanged ones
// every 30 minutes (see diskrecord).
const figuresOldest = 45 * time.Minute

// notFaster returns why a host's writes do not count as faster than this host's; empty if they do, or if writes are not
// compared.
func (v View) notFaster(h Host) string {
	switch {
	case !v.comparesWrites():
		return ""
	case v.Health.FastAgain:
		return "need not take over while this host's writes are fast again"
	}
	own, other := v.Health.Figures, h.Writes.WriteFigures
	why := v.meanNotFaster(h)
	if own.P50 == 0 || other.P50 == 0 || h.Writes.FiguresAge > figuresOldest {
		return why
	}
	known := v.Health.Writes != 0 && h.Writes.Mean != 0 && h.Writes.Age <= writesOldest
	switch {
	case known && h.Writes.Mean > v.Health.Writes:
		return why
	case faster(own.P90, other.P90, 1.5):
		return fmt.Sprintf("takes up to %s for nine of ten writes, and this host %s", durationfmt.Text(other.P90),
			durationfmt.Text(own.P90))
	case faster(other.P50, own.P50, v.Health.margin()), faster(other.P90, own.P90, v.Health.margin()),
		own.Tails >= tailsCompared && own.Tails >= 3*other.Tails:
		return ""
	}
	return why
}

// tailsCompared is the minimum number of slow episodes on this host before they are compared with another host's.
const tailsCompared = 6

// margin returns how many times faster than this host's a voter's writes must be. A few slow writes show little about a
// disk that is otherwise as fast as usual. In that case the voter must be better by far.
func (h Health) margin() float64 {
	if h.AsUsual {
		return 3
	}
	return 1.5
}

// faster reports whether one write time is shorter than another by at least that factor.
func faster(one, other time.Duration, times float64) bool {
	return one > 0 && float64(other) >= times*float64(one)
}

// meanNotFaster returns why a host's mean write time does not count as shorter than this host's; empty if it does.
func (v View) meanNotFaster(h Host) string {
	own, other := v.Health.Writes, h.Writes
	switch {
	case own == 0:
		return "cannot be compared with this host, which has too few measurements"
	case other.Mean == 0:
		return "has published no write measurements"
	case other.Age > writesOldest:
		return "last measured its writes " + durationfmt.Seconds(other.Age) + " ago, which is too long"
	case !faster(other.Mean, own, v.Health.margin()):
		const shown = 10 * time.Microsecond
		return fmt.Sprintf("takes %s per write on average, and this host takes %s",
			durationfmt.Text(other.Mean.Round(shown)), durationfmt.Text(own.Round(shown)))
	}
	return ""
}

// PublishesWrites reports whether this host publishes how long its writes take: it is a voter, and another host leads
// although its health state rules that out, unless the leader's writes are fast again.
func PublishesWrites(v View) bool {
	m, listed := v.member()
	if !listed || m.Learner || m.Leader {
		return false
	}
	for other := range v.Cluster.voters() {
		h, present := v.hostOf(other)
		if other.Leader && present && (h.Health == health.Warm || Unhealthy(h.Health)) && !h.Recovers {
			return blocks(h.Health, h.Ungated, health.Leadership)
		}
	}
	return false
}

// PublishesWriteFigures reports whether this host publishes its write figures: it is a voter, and another voter asks
// for them.
func PublishesWriteFigures(v View) bool {
	if !IsVoter(v) {
		return false
	}
	for other := range v.Cluster.voters() {
		h, present := v.hostOf(other)
		if present && h.AsksWrites && !h.Own && h.PeerURL != v.Self.PeerURL {
			return true
		}
	}
	return false
}

// IsVoter reports whether this host's member is a voter.
func IsVoter(v View) bool {
	m, listed := v.member()
	return listed && !m.Learner
}

// names reports whether an operation belongs to that host or concerns its member.
func (op *Op) names(h Host, m Member) bool {
	return op != nil && (op.Host == h.ID || op.MemberID == m.ID || op.Replaces == m.ID || op.PeerURL == m.PeerURL)
}

// betterLeader reports whether voter a, on host ah, is a better leader than voter b, on host bh.
func betterLeader(a Member, ah Host, b Member, bh Host) bool {
	wants := func(h Host) int {
		if h.Wants != "" {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(wants(ah), wants(bh)),
		cmp.Compare(leadershipRank(ah), leadershipRank(bh)),
		cmp.Compare(known(ah.P99), known(bh.P99)),
		cmp.Compare(distance(a), distance(b)),
		cmp.Compare(b.LiveFor, a.LiveFor),
		cmp.Compare(a.ID, b.ID),
	) < 0
}

// distance returns how far away a member is, in steps that double from 2 ms on, so that differences within one data
// center do not count.
func distance(m Member) int { return bits.Len64(uint64(known(m.RTT) / (2 * time.Millisecond))) }

// leadershipRank returns 1 (last) for a host whose health state rules out leadership, otherwise 0.
func leadershipRank(h Host) int {
	if blocks(h.Health, h.Ungated, health.Leadership) {
		return 1
	}
	return 0
}
