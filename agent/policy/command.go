// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Program is what is known of the program of a command. The agent makes it of its disk and of what it asks the side
// that runs programs, the model of its world: both ask it how the program is doing.
type Program struct {
	Name string
	// Noted is what this host's disk says: running, when it was started; done or failed; or nothing.
	Noted     HookState
	NotedText string
	OtherBoot bool // it was started in another boot of the machine than this one
	Able      bool // this agent can run programs
	Begun     bool // the operation has begun that it is for
	// Found is how it was found by who looked: due, when it has told nothing; Unseen is why nobody could look.
	Found    Hooks
	Unseen   string
	NotBegun bool // the time is over within which it had to begin
	Killed   bool // the time is over within which it had to end, killed if need be
	Launched bool // this agent has had it started so short a time ago that it would change nothing to do so again
}

// Settled gives how it is doing where nobody has to look for that. As long as the host waits for its turn nobody does:
// the disk on which the program lies may hang, and the loop with it.
func (p Program) Settled() (Hooks, bool) {
	started := p.Noted == HooksRunning
	switch {
	case p.Noted == HooksDone || p.Noted == HooksFailed:
		return Hooks{State: p.Noted, Text: p.NotedText}, true
	case started && p.OtherBoot:
		return p.failed("the machine rebooted after it was started, so its outcome is unknown: check what it did; " +
			"it is not run again"), true
	case !p.Able:
		return p.failed("this agent cannot run it"), true
	case !p.Begun && !started:
		return Hooks{State: HooksDue, Text: p.Name}, true
	}
	return Hooks{}, false
}

// State tells how it is doing. One that was started is taken for one that runs until its end is known, or it can have
// none any more: etcd must not start beside it, and it runs once.
func (p Program) State() Hooks {
	if settled, is := p.Settled(); is {
		return settled
	}
	started := p.Noted == HooksRunning
	switch {
	case p.Unseen != "" && started && p.Killed: // if it ever began
		return p.failed("it timed out, and its outcome is unknown: " + p.Unseen)
	case p.Unseen != "" && started: // it may well run
		return Hooks{State: HooksRunning, Text: p.Name + ": " + p.Unseen}
	case p.Unseen != "":
		return Hooks{State: HooksDue, Text: p.Name + ": " + p.Unseen}
	case p.Found.State == HooksDue && started && p.NotBegun:
		return p.failed("it was launched and has not started: see \"journalctl -u 'quorumd*'\"")
	case p.Found.State == HooksDue && started:
		return Hooks{State: HooksStarting, Text: p.Name + ": it is being started", Launched: p.Launched}
	case p.Found.State == HooksRunning:
		return Hooks{State: HooksRunning, Text: p.Name + " runs"}
	}
	return p.Found
}

func (p Program) failed(text string) Hooks {
	return Hooks{State: HooksFailed, Text: p.Name + ": " + text}
}
