// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

func TestAProgramCountsAsRunningUntilItsEndIsKnownOrItsTimeIsOver(t *testing.T) {
	t.Parallel()
	const cannot = "the disk hangs"
	due, runs := Hooks{State: HooksDue, Text: "upgrade"}, Hooks{State: HooksRunning}
	done := Hooks{State: HooksDone, Text: "upgrade: exit status 0"}
	for name, c := range map[string]struct {
		change func(p *Program)
		state  HookState
		text   string
	}{
		"it has not been started": {func(p *Program) { p.Observed = due }, HooksDue, "upgrade"},
		"its operation has not begun": {func(p *Program) {
			p.Begun, p.Observed = false, runs
		}, HooksDue, "upgrade"},
		"it was started before its operation was observed": {func(p *Program) {
			p.Begun, p.Recorded, p.Observed = false, HooksRunning, runs
		}, HooksRunning, "upgrade runs"},
		"it cannot be observed": {func(p *Program) {
			p.Unobserved = cannot
		}, HooksDue, "upgrade: the disk hangs"},
		"it was started and cannot be observed": {func(p *Program) {
			p.Recorded, p.Unobserved = HooksRunning, cannot
		}, HooksRunning, "upgrade: the disk hangs"},
		"it has not been started, cannot be observed, and its time is over": {func(p *Program) {
			p.Unobserved, p.TimedOut = cannot, true
		}, HooksDue, "upgrade: the disk hangs"},
		"it was started, cannot be observed, and its time is over": {func(p *Program) {
			p.Recorded, p.Unobserved, p.TimedOut = HooksRunning, cannot, true
		}, HooksFailed, "upgrade: it timed out, and its outcome is unknown: the disk hangs"},
		"it was launched and has reported nothing yet": {func(p *Program) {
			p.Recorded, p.Observed = HooksRunning, due
		}, HooksStarting, "upgrade: it is being started"},
		"it was launched and has reported nothing in time": {func(p *Program) {
			p.Recorded, p.Observed, p.StartTimedOut = HooksRunning, due, true
		}, HooksFailed, "upgrade: it was launched, but has not started: see \"journalctl -u 'quorumd*'\""},
		"it was not launched in time": {func(p *Program) {
			p.Observed, p.StartTimedOut = due, true
		}, HooksDue, "upgrade"},
		"it runs, though its start took long": {func(p *Program) {
			p.Recorded, p.Observed, p.StartTimedOut = HooksRunning, runs, true
		}, HooksRunning, "upgrade runs"},
		"it is done": {func(p *Program) {
			p.Recorded, p.Observed = HooksRunning, done
		}, HooksDone, "upgrade: exit status 0"},
		"the disk records that it is done": {func(p *Program) {
			p.Recorded, p.RecordedText, p.Observed, p.CanRun = HooksDone, "recorded", due, false
		}, HooksDone, "recorded"},
		"the disk records that it has failed": {func(p *Program) {
			p.Recorded, p.RecordedText, p.Observed = HooksFailed, "recorded", done
		}, HooksFailed, "recorded"},
		"the machine rebooted while it ran": {func(p *Program) {
			p.Recorded, p.OtherBoot, p.Observed = HooksRunning, true, due
		}, HooksFailed, "upgrade: the machine rebooted after the program was started, so its outcome is unknown: " +
			"check what it did; it is not run again"},
		"the machine rebooted before it was started": {func(p *Program) {
			p.OtherBoot, p.Observed = true, due
		}, HooksDue, "upgrade"},
		"this agent cannot run it": {func(p *Program) {
			p.CanRun, p.Observed = false, due
		}, HooksFailed, "upgrade: this agent cannot run it"},
	} {
		p := Program{Name: "upgrade", CanRun: true, Begun: true}
		c.change(&p)
		if got := p.State(); got.State != c.state || got.Text != c.text || got.Launched {
			t.Errorf("%s: %+v, want %s: %s", name, got, c.state, c.text)
		}
	}
	p := Program{Name: "upgrade", CanRun: true, Begun: true, Recorded: HooksRunning, Observed: due, Launched: true}
	if got := p.State(); !got.Launched {
		t.Errorf("this agent has just launched it: %+v", got)
	}
}
