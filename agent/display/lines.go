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
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/health"
)

// Line is the content of one line, from left to right.
type Line []Styled

// lineOf builds a line from a format whose only verb is %s. A Styled argument keeps its tone; any other value is plain.
func lineOf(format string, args ...any) Line {
	var line Line
	for i, part := range strings.Split(format, "%s") {
		if i > 0 {
			text, isStyled := args[i-1].(Styled)
			if !isStyled {
				text = Styled{Text: fmt.Sprint(args[i-1])}
			}
			line = append(line, text)
		}
		line = append(line, Styled{Text: part})
	}
	return slices.DeleteFunc(line, func(w Styled) bool { return w.Text == "" })
}

// CurrentWork returns lines about the pause, the operation in flight, this host's maintenance and the unfinished
// rollout.
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
	return lineOf("%s by %s until %s (%s left): %s. quorumctl resume ends it", Styled{"PAUSED", Bad},
		p.By, Timestamp(p.Until), Span(p.Until.Sub(now)), p.Reason)
}

// Operation returns the progress of the operation in flight.
func Operation(op control.Op, now time.Time) Line {
	took := Span(now.Sub(op.Started))
	if policy.Removes(op.Kind) {
		return lineOf("%s of member %s, by %s: %s, %s so far · by %s: %s", Styled{op.Kind, Strong},
			cmp.Or(op.Target, op.MemberID), op.HostName, op.Phase, took, op.By, op.Reason)
	}
	progress := After(" · ", op.Progress)
	if progress == "" && policy.TakesDown(op.Kind) && op.Reason != "" {
		progress = " · by " + op.By + ": " + op.Reason
	}
	if op.Interruptible {
		progress += " · interruptible"
	}
	return lineOf("%s of %s%s: %s, %s so far%s%s", Styled{op.Kind, Strong}, op.HostName, After(" as ", op.Target),
		op.Phase, took, timeLeft(op, now), progress)
}

// TakenDown reports whether the operation in flight, if any, shuts a host's etcd down in an orderly way and brings it
// back.
func TakenDown(op *control.Op) bool { return op != nil && policy.TakesDown(op.Kind) }

// Orphaned returns a line if no agent drives the operation.
func Orphaned(op control.Op) []Line {
	if !op.Orphaned {
		return nil
	}
	return []Line{lineOf("%s", Styled{op.HostName + " no longer holds the lock: quorumctl operation show", Bad})}
}

// asked returns a line for this host's maintenance and one for an unfinished rollout, if there are any.
func asked(s control.Status) []Line {
	var lines []Line
	if m := s.Maintenance; m != nil {
		why := " · by " + m.By + ": " + m.Reason
		if TakenDown(s.Op) && s.Op.Host == s.Host.ID {
			why = "" // the operation's line shows the reason
		}
		lines = append(lines, lineOf("%s of %s: %s%s%s", Styled{Work(m.Work, m.Command), Strong}, s.Host.Name,
			Styled{string(m.State), MaintenanceState(*m).Tone}, untilPart(*m, s.Time), why))
	}
	if s.Rollout != nil && Unfinished(*s.Rollout) {
		r := *s.Rollout
		stopped := ""
		if r.State == record.RolloutStopped {
			stopped = After(": ", r.Text)
		}
		lines = append(lines, lineOf("rollout %s: %s%s%s, %s · by %s: %s", Styled{Work(r.Work, r.Command), Strong},
			RolloutState(r), ChangedBy(r), stopped, Progress(r), r.By, r.Reason))
	}
	return lines
}

// Loop returns a line if the daemon's loop is stuck, or has not ended its first round yet.
func Loop(l control.Loop) []Line {
	if l.AgeSeconds == nil {
		return []Line{lineOf("%s", Styled{"quorumd has just started and has not finished its first round", Warn})}
	}
	const rounds = 5 // missed rounds
	if *l.AgeSeconds > max(rounds*l.IntervalSeconds, l.StuckAfterSeconds) {
		return []Line{lineOf("%s", Styled{
			"quorumd is stuck: its loop has not run for " + Age(l.AgeSeconds) + "; see journalctl -u quorumd", Bad,
		})}
	}
	return nil
}

// After prepends the separator to a text; it returns "" if the text is empty.
func After(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// Mute describes a mute: who muted the code, until when and why.
func Mute(m health.Mute, now time.Time) string {
	return string(m.Code) + " is muted by " + m.By + " until " + Timestamp(m.Until) + " (" + Span(m.Until.Sub(now)) +
		" left), unless it becomes worse than " + m.State.String() + ": " + m.Reason
}
