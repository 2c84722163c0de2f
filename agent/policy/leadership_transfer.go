// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/health"
)

// A slow leader leads forever: etcd only votes out a silent one. So if the health state of a leader's host rules out
// leading, its agent transfers leadership to a voter that may lead. That costs no quorum and needs no lock, whose
// writes would have to pass the slow leader.
//
// The others' health states are the published ones. A host that became unhealthy at the same time must have had time to
// report so, or leadership would move from one slow disk to the next. If an agent ended within its record's last TTL,
// its last record counts.
//
// If the disk is far too slow, no linearizable read returns in time, on any host. Then this host's own member is the
// source: it leads, and no host has newer data while a quorum reports that it follows. The others need longer to
// publish their health states then.
//
// A leader that only writes slowly transfers leadership to a voter that measures at least 1.5 times better now: a
// finding looks back over minutes, and two disks of one model differ by chance. A voter with an unknown or old
// measurement is no target. A leader whose write hangs or fails, or through which no read returns in time, needs no
// comparison: it serves nothing, no measurement can be exchanged through it, and a voter that is OK by its own record
// does better.
//
// Leadership does not circulate: it only moves from an unhealthy host to a healthy one, and each further transfer
// within the memory of the previous one waits twice as long. A failed attempt took leadership from no host: the next
// one comes sooner, and each waits twice as long as the one before.

// LeadershipTransfers is what this agent knows about its own member's leadership and its transfers.
type LeadershipTransfers struct {
	LeadsFor time.Duration // since when its member has led without a break; 0 if it does not
	UnfitFor   time.Duration // since when its health state has ruled out leading without a break; 0 if it does not
	LastFor  time.Duration // since it last requested a transfer; if it never has, since it began to observe
	InRow    int           // how many transfers it requested, each within the memory of the one before
}

// stepDownDoublings bounds the wait for another attempt: 32 times the first.
const stepDownDoublings = 5

// pace is how long after the last transfer the next one may follow.
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

// Again returns how many transfers in a row another one would make now. The count expires after twice the longest wait.
func (g LeadershipTransfers) NextInRow(l Limits) int {
	if g.LastFor > l.TransferInterval<<(stepDownDoublings+1) {
		return 1
	}
	return g.InRow + 1
}

// leading returns the view that judges a leader: its own member's if that was read, or the common one.
func (v View) leading() View {
	if v.Led == nil {
		return v
	}
	return *v.Led
}

// giveWay transfers leadership if this host leads, should not, and nothing speaks against it. While reads time out, the
// slow leader is reported, not the missing quorum that follows from it.
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

// stepDownVetoes declares what keeps an unhealthy leader from transferring leadership, in the order in which they are
// named.
func stepDownVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoOwnOperationDue(),
		vetoNotFollowed(),
		vetoAllUnhealthy(),
		vetoNoneBetter(),
		vetoSteppedDown(),
	}
}

// leaderSlow reports an unhealthy leader that still leads.
func leaderSlow(v View) (Reason, bool) {
	if v = v.leading(); !leadsBadly(v) {
		return Reason{}, false
	}
	return vetoed(v, vetoNotFollowed, vetoAllUnhealthy, vetoNoneBetter, vetoSteppedDown)
}

// dueIn returns how long it takes until leadership may be transferred, if nothing else speaks against it; 0 if it may
// now, or if something does.
func transferDueIn(v View) time.Duration {
	if v = v.leading(); !leadsBadly(v) || len(against(v, stepDownVetoes())) != 1 {
		return 0
	}
	return v.tooSoonFor()
}

// TransfersLeadershipSoon reports whether this host's leadership will be transferred before a read of the cluster
// through a slow leader would return, if nothing changes: such a read would only delay it.
func TransfersLeadershipSoon(v View) bool {
	due := transferDueIn(v)
	return due > 0 && due <= v.Limits.HealthDelay
}

// notFollowed reports whether too few voters report that they follow this host's member: another may lead by now, and
// its data may be old.
func notFollowed(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	if !v.Cluster.Led || live >= Quorum(voters) {
		return "", false
	}
	return fmt.Sprintf("%s, by its own report, but of %d voters only %d follow it, and %d must", v.leaderText(), voters,
		live,
		Quorum(voters)), true
}

// leaderSlowText is the text of leaderSlow as a caution.
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

// UnfitToLead reports whether a host with that health state should not lead.
func UnfitToLead(h Health) bool {
	return (h.State == health.Warm || Unhealthy(h.State)) && h.blocks(health.Leadership)
}

// leads describes this host as a leader.
func (v View) leaderText() string {
	return fmt.Sprintf("%s leads and is %s (%s)", v.Self.Name, v.Health.State, v.Health.Text)
}

// ownTurn reports whether this host is about to begin an operation, or is in one whose record is gone: those transfer
// leadership themselves. An operation with a record comes first.
func ownOperationDue(v View) (string, bool) {
	return "this host is in an operation, or about to begin one",
		v.Lock.Mine || v.Op != nil && v.Op.Host == v.Self.ID || v.Asked != nil && (v.Asked.RecordDeleted || v.Asked.Stopped)
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

// noneBetter reports that there is no voter to transfer leadership to, and why.
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
			none = ", and no other voter measures at least 1.5 times better: "
		}
		why = append(why, m.label()+" "+text)
	}
	if len(why) == 0 {
		why = []string{"it is the only one"}
	}
	return v.leaderText() + none + strings.Join(why, ", "), true
}

// tooSoonAgain reports whether the last transfer, the start of the leadership or the bad health state is too recent:
// the others must publish their health states first.
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

// stepDownIn returns for how much longer it is too soon.
func (v View) tooSoonFor() time.Duration {
	g, others := v.LeadershipTransfers, v.Limits.Settle
	if v.Cluster.Unread {
		others = max(others, v.Limits.HealthDelay)
	}
	return max(g.pace(v.Limits)-g.LastFor, v.Limits.Settle-g.LeadsFor, others-g.UnfitFor)
}

// betterVoter returns the best voter that may take over leadership from this host.
func betterVoter(v View) (Member, bool) {
	return bestVoterOf(v, func(m Member) bool { return m.PeerURL != v.Self.PeerURL && v.notBetter(m) == "" })
}

// notBetter explains why leadership is not transferred to a voter; empty if it may be. A voter that is or will be taken
// down would have to transfer it again.
func (v View) notBetter(m Member) string {
	if !m.Live && v.Cluster.Led {
		return "does not follow it"
	}
	if doubt := v.notProven(m, health.Leadership); doubt != "" {
		return doubt
	}
	if m.BehindFor >= v.Limits.Settle {
		return fmt.Sprintf("has been %d entries or more behind for %s", v.Limits.PromoteLag,
			durationfmt.Seconds(m.BehindFor))
	}
	h, _ := v.hostOf(m)
	down := v.Queue != nil && slices.Contains(v.Queue.Down, h.ID)
	next := v.Rollout != nil && v.Rollout.Runs && RolloutNext(v, v.Rollout.Waiting) == h.ID
	switch {
	case blocks(h.Health, h.Ungated, health.Leadership): // WARM is no obstacle elsewhere
		return "is " + h.Health.String()
	case h.InOperation, v.Op.names(h, m):
		return "is in an operation"
	case v.Removal != nil && v.Removal.MemberID == m.ID:
		return "is to be removed"
	case h.Wants != "", h.Waiting != "", down, next:
		return "is to be taken down"
	}
	return v.notFaster(h)
}

// writesOldest is how old a host's measurement of its writes may be: it publishes one a minute while the leader is
// slow.
const writesOldest = 150 * time.Second

// comparesWrites reports whether slow writes alone keep this host from leading, and it still serves.
func (v View) comparesWrites() bool {
	return v.Health.SlowWrites && !hangs(v.Health.State) && !v.Cluster.Unread
}

// hangs reports whether a health state says that the disk does not write at all.
func hangs(s health.State) bool { return s == health.Stalled || s == health.Failed }

// noFaster returns why a host's writes do not count as faster than this host's; empty if they do, or if it is not slow
// writes that keep this host from leading.
func (v View) notFaster(h Host) string {
	own, other := v.Health.Writes, h.Writes
	switch {
	case !v.comparesWrites():
		return ""
	case own == 0:
		return "cannot be compared with this host, which has too few measurements"
	case other.Mean == 0:
		return "has published no write measurements"
	case other.Age > writesOldest:
		return "measured its writes too long ago, " + durationfmt.Seconds(other.Age)
	case own-other.Mean < other.Mean/2:
		const shown = 10 * time.Microsecond
		return fmt.Sprintf("takes up to %s for a write, and this host %s", durationfmt.Text(other.Mean.Round(shown)),
			durationfmt.Text(own.Round(shown)))
	}
	return ""
}

// PublishesWrites reports whether this host publishes how long its writes take: it is a voter, and the leader is
// another host that should not lead. While nothing can be read in time, no measurement is compared and none is
// published.
func PublishesWrites(v View) bool {
	m, listed := v.member()
	if !listed || m.Learner || m.Leader {
		return false
	}
	for other := range v.Cluster.voters() {
		h, present := v.hostOf(other)
		if other.Leader && present && (h.Health == health.Warm || Unhealthy(h.Health)) {
			return blocks(h.Health, h.Ungated, health.Leadership)
		}
	}
	return false
}

// names reports whether an operation is one of that host, or of its member.
func (op *Op) names(h Host, m Member) bool {
	return op != nil && (op.Host == h.ID || op.MemberID == m.ID || op.Replaces == m.ID || op.PeerURL == m.PeerURL)
}
