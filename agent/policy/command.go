// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Program is what the state of a command's program is derived from. The agent fills it from this host's disk and from
// the process that runs programs, the model from its world.
type Program struct {
	Name string
	// Noted is what this host's disk records: running, once it was started; done or failed; or nothing.
	Noted     HookState
	NotedText string
	OtherBoot bool // it was started in an earlier boot of the machine
	Able      bool // this agent can run programs
	Begun     bool // the operation that it is for has begun
	// Found is the observed state: due if the program has reported nothing. Unseen is why it could not be observed.
	Found    Hooks
	Unseen   string
	NotBegun bool // the time limit for its start has passed
	Killed   bool // the time limit for its end has passed: if it ran, it was killed
	Launched bool // this agent started it so recently that starting it again would change nothing
}

// Settled returns the program's state if it is known without an observation, and whether it is. A host whose operation
// has not begun does not observe the program: the disk that holds it may hang, and the control loop with it.
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

// State returns the program's state. A started program counts as running until its end is known or its time limit has
// passed: etcd must not start next to it, and it must not run twice.
func (p Program) State() Hooks {
	if settled, known := p.Settled(); known {
		return settled
	}
	started := p.Noted == HooksRunning
	switch {
	case p.Unseen != "" && started && p.Killed:
		return p.failed("it timed out, and its outcome is unknown: " + p.Unseen)
	case p.Unseen != "" && started: // it may be running
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
