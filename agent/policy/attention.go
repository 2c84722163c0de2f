// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// ownMemberDown explains a member of this host that does not answer.
func ownMemberDown(v View, m Member) Decision {
	if !v.Self.Drives && v.Self.Conflict == "" {
		return wait(MemberDown, "%s; member %s does not answer", v.externalReason().Text, m.label())
	}
	if r, holds := vetoed(v, vetoHostConflict, vetoDataUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	if text, gone := dataGone(v, m); gone {
		return wait(MemberLost, "%s", text)
	}
	if v.gaveUp(m) {
		return wait(MemberLost, "%s", gaveUpText(m))
	}
	if r, holds := vetoed(v, vetoUnitUnusable); holds {
		return Decision{Reasons: []Reason{r}}
	}
	return wait(MemberDown, "the unit is %s, the data directory is %s, and member %s does not answer", v.Unit.State,
		v.Data.State, m.label())
}

// dataGone reports whether this host's member can never come back, because the data it acknowledged is gone from here.
func dataGone(v View, m Member) (string, bool) {
	said := fmt.Sprintf("this host is listed as %s %s (%x)", kindOf(m), m.label(), m.ID)
	switch {
	case unitRuns(v):
		return "", false
	case v.Data.State == DataEmpty:
		return said + ", but its data directory is empty: that member cannot come back", true
	case v.Data.State == DataRemains:
		return said + ", but its data directory holds no write-ahead log: that member cannot come back", true
	case v.Data.State == DataMember && v.Data.MemberID != m.ID:
		return fmt.Sprintf("%s, but its data directory is of member %x: that member cannot come back", said,
			v.Data.MemberID), true
	}
	return "", false
}

func kindOf(m Member) string {
	if m.Learner {
		return "learner"
	}
	return "voter"
}

// voterDown describes which voters are down, since when, and the remaining fault tolerance.
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
	if name := concerned(v, code); name != "" {
		text = strings.ReplaceAll(text, "NAME", name)
	}
	return text
}

// concerned names the member that a reason is about: by its ID if it has never published its name.
func concerned(v View, code ReasonCode) string {
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
