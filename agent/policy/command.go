// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Program is what is known about the program of a command. The agent builds it from its disk and from what the process
// that runs programs reports, the model from its world: both derive the program's state from it.
type Program struct {
	Name string
	// Noted is what this host's disk records: running, once it was started; done or failed; or nothing.
	Recorded     HookState
	RecordedText string
	OtherBoot bool // it was started in an earlier boot of the machine
	CanRun      bool // this agent can run programs
	Begun     bool // the operation that it is for has begun
	// Found is the state that was observed: due if it has reported nothing; Unseen is why it could not be observed.
	Observed    Hooks
	Unobserved   string
	StartTimedOut bool // the time within which it had to begin is over
	TimedOut   bool // the time within which it had to end is over, and it would have been killed
	Launched bool // this agent started it so recently that starting it again would change nothing
}

// Settled returns its state if that needs no observation. As long as the host waits for its turn, it is not observed:
// the disk with the program may hang, and the loop with it.
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

// State returns its state. Once started it counts as running until its end is known or no end is possible any more:
// etcd must not start next to it, and it runs only once.
func (p Program) State() Hooks {
	if settled, is := p.KnownState(); is {
		return settled
	}
	started := p.Recorded == HooksRunning
	switch {
	case p.Unobserved != "" && started && p.TimedOut: // if it ever began
		return p.failed("it timed out, and its outcome is unknown: " + p.Unobserved)
	case p.Unobserved != "" && started: // it may well run
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
