// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// Decide returns the next step, if any, the reasons why this host does nothing more, and the notes.
func Decide(v View) Decision {
	d := v.withUnreadable(decideAllowed(v))
	if d.Step.Kind == StepNone {
		d.Reasons = caution(v, d.Reasons)
	}
	if due := transferDueIn(v); due > 0 && v.Led != nil && (d.Again == 0 || due < d.Again) {
		d.Again = due
	}
	if soon, behind := v.repairDue(); soon > 0 && d.Step.Kind == StepNone && (d.Again == 0 || soon < d.Again) {
		d.Again, d.Behind = soon, append(d.Behind, behind...)
	}
	if connectionsAwaited(v) && d.Step.Kind == StepNone && (d.Again == 0 || lookSoon < d.Again) {
		d.Again = lookSoon
	}
	d.First = goesFirst(v, d)
	request := noteRequest(v, d.Step)
	hold := wantGuard(v, request)
	d.Step.Guard = guardOf(v, d.Step, request, hold)
	d.Notes = Notes{
		StartGuard: hold, Request: withGuard(request, hold), Removal: noteRemoval(v),
		Transfer: noteTransfer(v), Self: noteSelf(v),
		Queue: noteQueue(v, d.Role), Backup: noteBackup(v),
		RestoreTest: noteRestoreTest(v), BootstrapAttempt: noteBootstrapAttempt(v),
		Join: noteJoin(v, d.Step), Repair: countsRepair(v, d.Step), Recovery: noteRecovery(v, d.Step),
	}
	d.Quiet = quiet(v, d)
	return d
}

// decideAllowed decides, and withholds a step that must not be taken now.
func decideAllowed(v View) Decision {
	d := decide(v)
	if v.Cluster.Denied {
		reportDenied(d.Reasons)
	}
	d.Role = roleOf(v)
	d.Waiting = waiting(v)
	if d.Step.Kind == StepNone && v.Lock.Mine && v.Op == nil { // a decision that only waits needs no lock
		d.Step = Step{Kind: StepReleaseLock, Why: "this host has nothing to do under the lock now"}
	}
	if d.Step.Kind == StepNone {
		return d
	}
	if d.Step.Kind.Info().Led { // such a step was decided in the leading view, so that view's pause applies
		v = v.leading()
	}
	switch {
	case v.Failed.Kind != d.Step.Kind:
	case v.Failed.Denied:
		d.Reasons = append(d.Reasons, Reason{PermissionDenied, v.Failed.Text})
	case v.Failed.Full:
		d.Reasons = append(d.Reasons, refusedAsFull(v), Reason{StepFailed, v.Failed.Text})
	default:
		d.Reasons = append(d.Reasons, Reason{StepFailed, v.Failed.Text})
	}
	switch {
	case v.Stuck != "":
		return withhold(d, Reason{StepStuck, v.Stuck})
	case d.Step.Kind.Info().Drives && !v.Self.Drives:
		return withhold(d, v.externalReason())
	case v.Self.Mode != Manage:
		return withhold(d, Reason{ModeObserve, "the step would be: " + d.Step.String()})
	case v.Recovery != nil && !v.Recovery.Late: // an operator ordered the plan, and a pause needs a quorum
		return d
	case v.Pause != nil && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		return withhold(d, paused(v.Pause))
	case v.blocksAll() && !d.Step.Kind.Info().Always && !comesBack(v, d.Step):
		r, _ := v.unreadable()
		return withhold(d, r)
	// Every start of etcd is checked here, because a join starts etcd as well.
	case commandMayRun(v) && d.Step.Kind == StepStartUnit:
		return withhold(d, Reason{CommandRunning, v.Asked.Command.Text})
	// While writes hang, this host would lose the lock and take it again, over and over, and block all other hosts.
	case v.Health.Hangs && d.Step.Kind == StepTakeLock:
		return withhold(d, Reason{HealthBad, v.Health.Text})
	}
	return d
}

// reportDenied corrects the codes of the reasons if etcd answers but denies access, which otherwise looks like a
// missing quorum.
func reportDenied(reasons []Reason) {
	for i := range reasons {
		if code := reasons[i].Code; code == ClusterUnreachable || code == NoQuorum {
			reasons[i].Code = PermissionDenied
		}
	}
}

// withhold moves the step to Would, and puts the reason in front of all others.
func withhold(d Decision, r Reason) Decision {
	d.Would, d.Step = d.Step, Step{}
	d.Reasons = append([]Reason{r}, d.Reasons...)
	return d
}

// decide returns the decision of the first concern that has one.
func decide(v View) Decision {
	for _, c := range concerns() {
		if d, decided := c.part(v); decided {
			return d
		}
	}
	return rest(v)
}

func do(s Step) Decision { return Decision{Step: s} }

func wait(code ReasonCode, format string, args ...any) Decision {
	return Decision{Reasons: []Reason{{code, fmt.Sprintf(format, args...)}}}
}

// rest returns why there is nothing to do.
func rest(v View) Decision {
	if v.foreign() {
		return blockedBy(v, vetoIDMismatch)
	}
	if v.Op != nil {
		return Decision{Reasons: blockedBy(v, vetoOperationInFlight).Reasons, Again: v.reportAwaited()}
	}
	if m, listed := v.member(); listed && !m.Live {
		return ownMemberDown(v, m)
	}
	if text, down := voterDown(v); down { // every host reports it
		code := VoterNotLive
		if _, dead := v.deadVoterSummary(); dead {
			code = VoterDead
		}
		return Decision{Reasons: []Reason{{code, text}}, Again: v.reportAwaited()}
	}
	if r, slow := leaderSlow(v); slow && Unhealthy(v.Health.State) { // a WARM leader is only a caution
		return Decision{Reasons: []Reason{r}}
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoVoterUnhealthy, vetoSurplus, vetoRetired); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if role := roleOf(v); role != RoleLearner {
		return wait(Idle, "this host is a %s; nothing to do", role)
	}
	return wait(Idle, "this host is a permanent learner; nothing to do")
}

// member returns this host's entry in the member list.
func (v View) member() (Member, bool) {
	for _, m := range v.Cluster.Members {
		if m.PeerURL == v.Self.PeerURL {
			return m, true
		}
	}
	return Member{}, false
}

// hostOf returns the host record of a member's host.
func (v View) hostOf(m Member) (Host, bool) {
	i := slices.IndexFunc(v.Hosts, func(h Host) bool { return h.PeerURL == m.PeerURL })
	if i < 0 {
		return Host{}, false
	}
	return v.Hosts[i], true
}

func roleOf(v View) Role {
	if !v.Cluster.Reachable {
		return RoleUnknown
	}
	m, listed := v.member()
	joining := v.Op.joins() && v.Op.Host == v.Self.ID && (!listed || !m.Standby)
	switch {
	case listed && !m.Learner:
		return RoleVoter
	case joining:
		return RoleJoining
	case listed && m.Name != "" && v.Self.Learner:
		return RoleLearner
	case listed && m.Name != "":
		return RoleStandby
	}
	return RoleSpare // also for a host whose learner never started and belongs to no join
}

func (v View) listed(id uint64) bool {
	for _, m := range v.Cluster.Members {
		if m.ID == id {
			return true
		}
	}
	return false
}

// concern is a situation that a host may have to handle.
type concern struct {
	name string
	part func(View) (Decision, bool)
}

// concerns returns the concerns in order of precedence. A host finishes an operation in progress before it begins
// another, and replaces a dead or unhealthy voter before the cluster grows. A pause is not a concern: decideAllowed
// withholds the step of any concern during a pause, with few exceptions, such as the start of an etcd that this agent
// has stopped.
func concerns() []concern {
	return []concern{
		{"recovery from quorum loss", recovery},
		{"bootstrap on request", bootstrap},
		{"automatic bootstrap", automaticBootstrap},
		{"NOSPACE alarm that this agent may end", freeSpace},
		{"this host's operation", ownOperation},
		{"leadership transfer from an unhealthy leader", stepDown},
		{"requested member removal", removal},
		{"surplus voter of a smaller cluster", leave},
		{"etcd's downgrade job during a rollout", downgradeJob},
		{"this host's request", cycle},
		{"another host's operation", othersOperation},
		{"leadership transfer on request", requestedTransfer},
		{"single-member cluster made by default", ownDefaultCluster},
		{"etcd of this host's member", ownUnit},
		{"CORRUPT alarm", corruption},
		{"NOSPACE alarm", fullDatabase},
		{"permits to free space", writePermits},
		{"leftover learners", leftover},
		{"lost standby", removeLostStandby},
		{"this host's member without data", rejoin},
		{"replacement of a dead or unhealthy voter", replace},
		{"join", join},
	}
}

// Notes take effect in addition to the step: Queue is written to etcd, Transfer is kept in memory, Backup and
// RestoreTest start or end jobs, and StartGuard, Request, Removal, Self and BootstrapAttempt are written to this host's
// disk, outside the control loop, because the disk may hang.
type Notes struct {
	StartGuard       StartGuard
	Request          RequestNote
	Removal          RemovalNote
	Transfer         TransferNote
	Self             SelfNote
	Queue            QueueNote
	Backup           BackupNote
	RestoreTest      RestoreTestNote
	BootstrapAttempt BootstrapNote

	// The following notes are written together with the step, and mean nothing without one.
	Join     JoinNote
	Repair   bool // with the step, record one more replacement and which voter it replaces
	Recovery RecoveryNote
}

// dataGone reports whether this host's member can never come back, because its data is gone from this host, and returns
// the reason.
func dataGone(v View, m Member) (string, bool) {
	listed := fmt.Sprintf("this host is listed as %s %s (%x)", kindOf(m), m.label(), m.ID)
	switch {
	case unitRuns(v):
		return "", false
	case v.Data.State == DataEmpty:
		return listed + ", but its data directory is empty: that member cannot come back", true
	case v.Data.State == DataRemains:
		return listed + ", but its data directory holds no write-ahead log: that member cannot come back", true
	case v.Data.State == DataMember && v.Data.MemberID != m.ID:
		return fmt.Sprintf("%s, but its data directory holds the data of member %x: that member cannot come back",
			listed, v.Data.MemberID), true
	}
	return "", false
}

func kindOf(m Member) string {
	if m.Learner {
		return "learner"
	}
	return "voter"
}

// voterDown reports whether voters are down. The text names them, the time for which they have been down, and the
// remaining fault tolerance.
func voterDown(v View) (string, bool) {
	var down []string
	var since time.Duration
	for m := range v.Cluster.voters() {
		if !m.Live {
			down = append(down, m.label())
			since = max(since, m.DownFor)
		}
	}
	if len(down) == 0 {
		return "", false
	}
	voters, live := v.Cluster.Counts()
	summary, _ := v.deadVoterSummary()
	return fmt.Sprintf("%s for %s: %d of %d voters are live, fault tolerance %d%s", unanswered(down),
		durationfmt.Seconds(since), live, voters, max(0, Tolerance(voters, live)), summary), true
}

func unanswered(names []string) string {
	if len(names) == 1 {
		return "voter " + names[0] + " has not answered"
	}
	return "voters " + strings.Join(names, ", ") + " have not answered"
}

// Remedy returns the declared remedy of a reason of this view, with the name of the member it concerns.
func Remedy(v View, code ReasonCode) string {
	text := code.Info().Remedy
	if name := concernedMember(v, code); name != "" {
		text = strings.ReplaceAll(text, "NAME", name)
	}
	return text
}

// concernedMember returns the name of the member that a reason is about, or its ID if it has never published a name.
func concernedMember(v View, code ReasonCode) string {
	if dead := DeadVoters(v); code == VoterDead && len(dead) > 0 {
		return cmp.Or(dead[0].Member.Name, fmt.Sprintf("%x", dead[0].Member.ID))
	}
	for _, m := range v.Cluster.Members {
		own := m.PeerURL == v.Self.PeerURL
		if (code == VoterNotLive && !m.Learner && !m.Live) || (code == LearnerPresent && m.Learner && !own) ||
			(code == MemberLost && own) {
			if m.Name != "" {
				return m.Name
			}
			return fmt.Sprintf("%x", m.ID)
		}
	}
	return ""
}
