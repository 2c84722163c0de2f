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

// A leader that is merely slow leads for ever: etcd votes out only one that is silent. So the agent of a leader whose
// own verdict keeps it from being given the leadership hands it over, to a voter whose verdict does not. It takes
// nothing from the quorum, and needs no lock, whose own writes would have to go through the slow leader.
//
// The others' verdicts are those that they have published: one that became sick with this host has to have had time to
// say so, or the leadership would go from one slow disk to the next. One whose agent has ended within the last
// presence lease counts by its last word.
//
// Where the disk is far too slow, no linearizable read comes back in time, on any host. So it rests on the word of this
// host's own member, that it leads, and what it holds: nobody else holds anything newer while a quorum says that it
// follows. The others need longer then to tell their verdicts.
//
// A leader that only writes slowly transfers the leadership to a voter that measures at least 1.5 times better now: a
// finding looks back over minutes, and two disks of one model differ by chance. A voter whose figure is unknown or old
// is no target. A leader whose write hangs or fails, or through which no read comes back in time, needs no comparison:
// it serves nothing, no figure can be exchanged through it, and a voter that is OK by its own record does better.
//
// It goes in no circle: it only ever goes to a host that is well from one that is not, and each further time within
// the memory of the one before waits twice as long. One that came to nothing took the leadership from nobody: the next
// try comes sooner, and each waits twice as long as the one before.

// LeadershipTransfers is what this agent knows of its own member's leadership, and of when it has handed it over.
type LeadershipTransfers struct {
	LeadsFor time.Duration // since when its member has led without break; 0 when it does not
	BadFor   time.Duration // since when its verdict has kept it from leading without break; 0 when it does not
	LastFor  time.Duration // since it last asked to hand over; if it never has, since it began to look
	InRow    int           // so many times it has, each within the memory of the one before
}

// giveWayDoublings bounds the wait for another try: 32 times the first.
const giveWayDoublings = 5

// pace is how long after the last time it is handed over again.
func (g LeadershipTransfers) pace(l Limits) time.Duration {
	longest, before := l.GiveWay<<giveWayDoublings, max(g.InRow-1, 0)
	if g.InRow == 0 || g.LeadsFor <= g.LastFor {
		return min(l.GiveWay<<min(before, giveWayDoublings), longest)
	}
	wait := min(l.Settle, l.GiveWay) // the last came to nothing
	for ; before > 0 && wait < longest; before-- {
		wait *= 2
	}
	return min(wait, longest)
}

// Again gives how many times in a row it is when one more comes now. It is forgotten after twice the longest wait.
func (g LeadershipTransfers) Again(l Limits) int {
	if g.LastFor > l.GiveWay<<(giveWayDoublings+1) {
		return 1
	}
	return g.InRow + 1
}

// leading gives the view by which a leader is judged: its own member's word if that was asked, or what all agree on.
func (v View) leading() View {
	if v.Led == nil {
		return v
	}
	return *v.Led
}

// giveWay hands the leadership over, if this host leads, should not, and nothing is against it. While reads outlast
// their time that is what is told: that no quorum answers is only what follows from it.
func giveWay(view View) (Decision, bool) {
	v := view.leading()
	if !leadsBadly(v) {
		return Decision{}, false
	}
	if len(against(v, giveWayVetoes())) > 0 {
		r, slow := leaderSlow(view)
		if _, turn := ownTurn(v); !slow || turn || !v.Cluster.Unread {
			return Decision{}, false
		}
		return Decision{Reasons: append([]Reason{r}, silent(view).Reasons...)}, true
	}
	to, _ := betterVoter(v)
	return do(Step{Kind: StepGiveWay, MemberID: to.ID, Why: "to " + to.label() + ": " + v.leads()}), true
}

// giveWayVetoes declares what keeps a leader that is not well from handing over, in the order in which they are named.
func giveWayVetoes() []veto {
	return []veto{
		vetoHostConflict(),
		vetoOwnTurn(),
		vetoNotFollowed(),
		vetoAllSick(),
		vetoNoneBetter(),
		vetoGaveWay(),
	}
}

// leaderSlow is what people are told of a leader that is not well and leads on.
func leaderSlow(v View) (Reason, bool) {
	if v = v.leading(); !leadsBadly(v) {
		return Reason{}, false
	}
	return vetoed(v, vetoNotFollowed, vetoAllSick, vetoNoneBetter, vetoGaveWay)
}

// dueIn gives how long it takes until the leadership may be handed over, if nothing else is against it; 0 when it may,
// or when something is.
func dueIn(v View) time.Duration {
	if v = v.leading(); !leadsBadly(v) || len(against(v, giveWayVetoes())) != 1 {
		return 0
	}
	return v.giveWayIn()
}

// TransfersLeadershipSoon tells whether this host's leadership is handed over within the time that a look at the
// cluster may take through a slow leader, if nothing changes: such a look would only put it off.
func TransfersLeadershipSoon(v View) bool {
	due := dueIn(v)
	return due > 0 && due <= v.Limits.Word
}

// notFollowed tells whether too few voters say that they follow this host's member: another may lead by now, so that
// what it holds may be old.
func notFollowed(v View) (string, bool) {
	voters, live := v.Cluster.Counts()
	if !v.Cluster.Led || live >= Quorum(voters) {
		return "", false
	}
	return fmt.Sprintf("%s, by its own report, but of %d voters only %d follow it, and %d must", v.leads(), voters, live,
		Quorum(voters)), true
}

// leaderSlowText is that beside another reason.
func leaderSlowText(v View) (string, bool) {
	r, holds := leaderSlow(v)
	return r.Text, holds && r.Code == LeaderSlow
}

// leadsBadly tells whether this host's member leads, and its verdict keeps it from being given the leadership. One
// that nothing is known of leads on.
func leadsBadly(v View) bool {
	m, listed := v.member()
	return v.Cluster.Reachable && !v.foreign() && listed && m.Leader && !m.Learner && UnfitToLead(v.Health)
}

// UnfitToLead tells whether a host with that verdict should not lead.
func UnfitToLead(h Health) bool {
	return (h.State == health.Warm || sick(h.State)) && h.gates(health.Leadership)
}

// leads says that of this host.
func (v View) leads() string {
	return fmt.Sprintf("%s leads and is %s (%s)", v.Self.Name, v.Health.State, v.Health.Text)
}

// ownTurn tells whether this host is about to begin an operation, or in one of which the record is gone: those move the
// leadership themselves. One whose record is there goes before.
func ownTurn(v View) (string, bool) {
	return "this host is in an operation, or about to begin one",
		v.Lock.Mine || v.Op != nil && v.Op.Host == v.Self.ID || v.Asked != nil && (v.Asked.Noted || v.Asked.Stopped)
}

// allSick tells whether all voters are sick together: what they share is the cause, and to move the leadership would
// mend nothing.
func allSick(v View) (string, bool) {
	others := 0
	for m := range v.Cluster.voters() {
		if m.PeerURL == v.Self.PeerURL {
			continue
		}
		if h, present := v.hostOf(m); !m.Live || !present || !sick(h.Health) {
			return "", false
		}
		others++
	}
	return v.leads() + ", and all other voters are unhealthy as well: leadership stays here",
		others > 0 && sick(v.Health.State)
}

// noneBetter tells that there is nobody to hand over to, and why not.
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
		if h, _ := v.hostOf(m); text == v.noFaster(h) {
			none = ", and no other voter measures at least 1.5 times better: "
		}
		why = append(why, m.label()+" "+text)
	}
	if len(why) == 0 {
		why = []string{"it is the only one"}
	}
	return v.leads() + none + strings.Join(why, ", "), true
}

// tooSoonAgain tells whether the last time is too short a time ago, or that this host has led at all, or that its
// verdict keeps it from that: the others have to tell theirs first.
func tooSoonAgain(v View) (string, bool) {
	left := v.giveWayIn()
	if left <= 0 {
		return "", false
	}
	text := v.leads()
	if to, found := betterVoter(v); found {
		text += fmt.Sprintf("; it transfers leadership to %s in %s", to.label(), durationfmt.Tenths(left))
	}
	if v.Failed.Kind == StepGiveWay {
		text += "; etcd refused the last attempt: " + v.Failed.Text
	}
	return text, true
}

// giveWayIn gives for how long it is too soon.
func (v View) giveWayIn() time.Duration {
	g, others := v.LeadershipTransfers, v.Limits.Settle
	if v.Cluster.Unread {
		others = max(others, v.Limits.Word)
	}
	return max(g.pace(v.Limits)-g.LastFor, v.Limits.Settle-g.LeadsFor, others-g.BadFor)
}

// betterVoter gives the best of the voters that this host may hand its leadership over to.
func betterVoter(v View) (Member, bool) {
	return bestVoterOf(v, func(m Member) bool { return m.PeerURL != v.Self.PeerURL && v.notBetter(m) == "" })
}

// notBetter says why the leadership is not handed over to a voter; empty when it may be. One that is taken down, or is
// to be, would have to move it again.
func (v View) notBetter(m Member) string {
	if !m.Live && v.Cluster.Led {
		return "does not follow it"
	}
	if doubt := v.doubt(m, health.Leadership); doubt != "" {
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
	case gates(h.Health, h.Spares, health.Leadership): // WARM is no doubt elsewhere
		return "is " + h.Health.String()
	case h.Turn, v.Op.names(h, m):
		return "is in an operation"
	case v.Removal != nil && v.Removal.MemberID == m.ID:
		return "is to be removed"
	case h.Wants != "", h.Waiting != "", down, next:
		return "is to be taken down"
	}
	return v.noFaster(h)
}

// writesOldest is how old a host's figure of its writes may be: it publishes one a minute while the leader is slow.
const writesOldest = 150 * time.Second

// comparesWrites reports whether slow writes alone keep this host from leading, and it still serves.
func (v View) comparesWrites() bool {
	return v.Health.SlowWrites && !hangs(v.Health.State) && !v.Cluster.Unread
}

// hangs reports whether a health state says that the disk does not write at all.
func hangs(s health.State) bool { return s == health.Stalled || s == health.Failed }

// noFaster returns why a host's writes do not count as faster than this host's; empty if they do, or if it is not slow
// writes that keep this host from leading.
func (v View) noFaster(h Host) string {
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
		if other.Leader && present && (h.Health == health.Warm || sick(h.Health)) {
			return gates(h.Health, h.Spares, health.Leadership)
		}
	}
	return false
}

// names tells whether an operation is one of that host, or of its member.
func (op *Op) names(h Host, m Member) bool {
	return op != nil && (op.Host == h.ID || op.MemberID == m.ID || op.Replaces == m.ID || op.PeerURL == m.PeerURL)
}
