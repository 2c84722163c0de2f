// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Program is what the state of a command's program is derived from. The agent fills it from this host's disk and from
// the process that runs programs, the model from its world.
type Program struct {
	Name string
	// Recorded is what this host's disk records: running, once it was started; done or failed; or nothing.
	Recorded     HookState
	RecordedText string
	OtherBoot    bool // it was started in an earlier boot of the machine
	CanRun       bool // this agent can run programs
	Begun        bool // the operation that it is for has begun
	// Observed is the observed state: due if the program has reported nothing. Unobserved is why it could not be
	// observed.
	Observed      Hooks
	Unobserved    string
	StartTimedOut bool // the time limit for its start has passed
	TimedOut      bool // the time limit for its end has passed: if it ran, it was killed
	Launched      bool // this agent started it so recently that starting it again would change nothing
}

// KnownState returns the program's state if it is known without an observation, and whether it is. A host whose
// operation has not begun does not observe the program: the disk that holds it may hang, and the control loop with it.
func (p Program) KnownState() (Hooks, bool) {
	started := p.Recorded == HooksRunning
	switch {
	case p.Recorded == HooksDone || p.Recorded == HooksFailed:
		return Hooks{State: p.Recorded, Text: p.RecordedText}, true
	case started && p.OtherBoot:
		return p.failed("the machine rebooted after it was started, so its outcome is unknown: check what it did; " +
			"it is not run again"), true
	case !p.CanRun:
		return p.failed("this agent cannot run it"), true
	case !p.Begun && !started:
		return Hooks{State: HooksDue, Text: p.Name}, true
	}
	return Hooks{}, false
}

// State returns the program's state. A started program counts as running until its end is known or its time limit has
// passed: etcd must not start next to it, and it must not run twice.
func (p Program) State() Hooks {
	if settled, known := p.KnownState(); known {
		return settled
	}
	started := p.Recorded == HooksRunning
	switch {
	case p.Unobserved != "" && started && p.TimedOut:
		return p.failed("it timed out, and its outcome is unknown: " + p.Unobserved)
	case p.Unobserved != "" && started: // it may be running
		return Hooks{State: HooksRunning, Text: p.Name + ": " + p.Unobserved}
	case p.Unobserved != "":
		return Hooks{State: HooksDue, Text: p.Name + ": " + p.Unobserved}
	case p.Observed.State == HooksDue && started && p.StartTimedOut:
		return p.failed("it was launched and has not started: see \"journalctl -u 'quorumd*'\"")
	case p.Observed.State == HooksDue && started:
		return Hooks{State: HooksStarting, Text: p.Name + ": it is being started", Launched: p.Launched}
	case p.Observed.State == HooksRunning:
		return Hooks{State: HooksRunning, Text: p.Name + " runs"}
	}
	return p.Observed
}

func (p Program) failed(text string) Hooks {
	return Hooks{State: HooksFailed, Text: p.Name + ": " + text}
}
