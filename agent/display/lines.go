// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// Line is what stands in one line, from left to right.
type Line []Styled

// say makes a line of a format that has no verb but %s, and of words and other values for them.
func say(format string, args ...any) Line {
	var line Line
	for i, part := range strings.Split(format, "%s") {
		if i > 0 {
			word, isWord := args[i-1].(Styled)
			if !isWord {
				word = Styled{Text: fmt.Sprint(args[i-1])}
			}
			line = append(line, word)
		}
		line = append(line, Styled{Text: part})
	}
	return slices.DeleteFunc(line, func(w Styled) bool { return w.Text == "" })
}

// Cluster says how many more failures the cluster survives, and why that is not known if it is not.
func Cluster(c control.Cluster) []Line {
	lines := []Line{say("%s · voters %s · %s%s%s", Styled{c.Name, Strong}, Voters(c), Tolerance(c), Standbys(c),
		After(" · etcd ", c.Version))}
	if c.ID == "" {
		lines = []Line{say("%s · no cluster in view", Styled{c.Name, Strong})}
	}
	if c.Reachable || c.ID == "" && c.Error == "" {
		return lines
	}
	what := "etcd has no quorum: "
	if Unreachable(c) {
		what = "etcd does not answer: "
	}
	lines = append(lines, say("%s", Styled{what + cmp.Or(c.Error, "no cause is known"), Bad}))
	if c.AgeSeconds != nil && c.ID != "" {
		but := "what stands here"
		if !Unreachable(c) {
			but = "who answers is of now; what else stands here"
		}
		lines = append(lines, say("%s about the cluster is %s old", but, Age(c.AgeSeconds)))
	}
	return lines
}

// CurrentWork returns what the cluster is doing, or what prevents steps: the pause, the operation in flight, and the
// requests of operators for this host and for the cluster.
func CurrentWork(s control.Status) []Line {
	var lines []Line
	if s.Pause != nil {
		lines = append(lines, pause(*s.Pause, s.Time))
	}
	if s.Op != nil {
		lines = append(lines, Operation(*s.Op, s.Time))
		lines = append(lines, Orphaned(*s.Op)...)
	}
	return append(lines, asked(s)...)
}

func pause(p control.Pause, now time.Time) Line {
	return say("%s by %s until %s (%s left): %s. quorumctl resume ends it", Styled{"PAUSED", Bad},
		p.By, Timestamp(p.Until), Span(p.Until.Sub(now)), p.Reason)
}

// Operation says how far the operation in flight is.
func Operation(op control.Op, now time.Time) Line {
	took := Span(now.Sub(op.Started))
	if policy.Removes(op.Kind) {
		return say("%s of member %s, by %s: %s for %s · by %s: %s", Styled{op.Kind, Strong},
			cmp.Or(op.Target, op.MemberID), op.HostName, op.Phase, took, op.By, op.Reason)
	}
	progress := After(" · ", op.Progress)
	if progress == "" && policy.TakesDown(op.Kind) && op.Reason != "" {
		progress = " · by " + op.By + ": " + op.Reason
	}
	return say("%s of %s%s: %s for %s%s%s", Styled{op.Kind, Strong}, op.HostName, After(" as ", op.Target), op.Phase,
		took, patience(op, now), progress)
}

// TakenDown tells whether the operation in flight, if there is one, takes a host down in order and brings it back.
func TakenDown(op *control.Op) bool { return op != nil && policy.TakesDown(op.Kind) }

// Orphaned says something only when nobody drives the operation.
func Orphaned(op control.Op) []Line {
	if !op.Orphaned {
		return nil
	}
	return []Line{say("  %s", Styled{op.HostName + " no longer holds the lock: quorumctl operation show", Bad})}
}

// asked says what operators have asked for, in a line each.
func asked(s control.Status) []Line {
	var lines []Line
	if m := s.Maintenance; m != nil {
		why := " · by " + m.By + ": " + m.Reason
		if TakenDown(s.Op) && s.Op.Host == s.Host.ID {
			why = "" // the line of the operation has said it
		}
		lines = append(lines, say("%s of %s: %s%s%s", Styled{Work(m.Work, m.Command), Strong}, s.Host.Name,
			Styled{m.State, MaintenanceState(*m).Tone}, untilPart(*m, s.Time), why))
	}
	if s.Rollout != nil && Unfinished(*s.Rollout) {
		r := *s.Rollout
		stopped := ""
		if r.State == control.RolloutStopped {
			stopped = After(": ", r.Text)
		}
		lines = append(lines, say("rollout %s: %s%s%s, %s · by %s: %s", Styled{Work(r.Work, r.Command), Strong},
			RolloutState(r), ChangedBy(r), stopped, Progress(r), r.By, r.Reason))
	}
	return lines
}

// Loop says something only when the daemon answers without working.
func Loop(l control.Loop) []Line {
	if l.AgeSeconds == nil {
		return []Line{say("%s", Styled{"quorumd has just started: its first look is not over", Warn})}
	}
	const rounds = 5 // missed ones
	if *l.AgeSeconds > max(rounds*l.IntervalSeconds, l.StuckAfterSeconds) {
		return []Line{say("%s", Styled{
			"quorumd is stuck: its loop has not run for " + Age(l.AgeSeconds) + ". journalctl -u quorumd", Bad,
		})}
	}
	return nil
}

// After gives a text behind a separator, or nothing.
func After(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// Mute says who has muted what, until when and why.
func Mute(m control.Mute, now time.Time) string {
	return m.Code + " is muted by " + m.By + " until " + Timestamp(m.Until) + " (" + Span(m.Until.Sub(now)) +
		" left), unless it becomes worse than " + m.State + ": " + m.Reason
}
