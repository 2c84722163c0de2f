// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

const requestName = "maintenance.json"

// requestFile is what was asked of this host and how the last such thing ended. It lies in the state
// directory: it must be known across reboots, and while no etcd answers.
type requestFile struct {
	Ask  *Request `json:"ask,omitempty"`
	Last *End     `json:"last,omitempty"`
}

// Request is a wish to take this host down and bring it back, as it lies on the disk. What its flags mean, and what
// becomes of them, stands in policy.Standing.
type Request struct {
	Work           policy.Work   `json:"work"`
	Reason         string        `json:"reason"`
	By             string        `json:"by"`
	Since          time.Time     `json:"since"`
	For            time.Duration `json:"for"` // after which it is overdue, once its operation has begun; 0: never
	KeepRunning    bool          `json:"keepRunning,omitempty"`
	External       bool          `json:"external,omitempty"`
	Hurried        bool          `json:"hurried,omitempty"` // the machine goes down within seconds, whatever is decided
	Rollout        string        `json:"rollout,omitempty"`
	RolloutResumed int           `json:"rolloutResumed,omitempty"` // how often that was let go on; see End
	Program        string        `json:"program,omitempty"`        // of a command
	ProgramRun
	Ended   bool   `json:"over,omitempty"`    // a person has said so, or the operation is about to be ended
	Waived  bool   `json:"waived,omitempty"`  // a person has said so although the hooks had failed that run after it
	Stopped bool   `json:"stopped,omitempty"` // etcd was stopped for it and has not been started since
	BootID  string `json:"bootID,omitempty"`  // of the boot in which its operation began
	// Seen: its operation was seen in etcd, and is in flight until it has ended or was released
	Seen    bool   `json:"seen,omitempty"`
	AskedIn string `json:"askedIn,omitempty"` // the boot in which it was asked

	Began   time.Time     `json:"began,omitzero"`   // its operation, if one has
	Clock   time.Duration `json:"clock,omitempty"`  // since boot, when it began
	Cluster ID            `json:"cluster,omitzero"` // in which it began
}

// End is how a request ended.
type End struct {
	Work   policy.Work       `json:"work"`
	Reason string            `json:"reason"`
	By     string            `json:"by"`
	Since  time.Time         `json:"since"`
	Ended  time.Time         `json:"ended"`
	Code   policy.ReasonCode `json:"code"`
	Text   string            `json:"text"`

	// Rollout is the one that has asked for it, and RolloutResumed how often that had been let go on: when it asked,
	// or when the operation ended.
	Rollout        string `json:"rollout,omitempty"`
	RolloutResumed int    `json:"rolloutResumed,omitempty"`
}

// Until gives when it becomes overdue; zero for never, and while it waits for its turn, which may take as long as it
// likes.
func (k *Request) Until() time.Time {
	if k.For <= 0 || k.Began.IsZero() {
		return time.Time{}
	}
	return k.Began.Add(k.For)
}

// Lasts has it last for that long from now on, or once its turn has come.
func (k *Request) Lasts(d time.Duration, now time.Time) {
	if k.For = d; !k.Began.IsZero() {
		k.For += now.Sub(k.Began)
	}
}

// Standing gives what is decided by, in that boot of the machine.
func (k *Request) Standing(bootID string) policy.Standing {
	return policy.Standing{
		By: k.By, Reason: k.Reason, Work: k.Work, Program: k.Program,
		KeepRunning: k.KeepRunning, External: k.External, Hurried: k.Hurried,
		Ended: k.Ended, Waived: k.Waived, Begun: k.BootID != "", Seen: k.Seen, Stopped: k.Stopped, Ran: k.Ran,
		OtherBoot: cmp.Or(k.BootID, k.AskedIn) != bootID,
	}
}

// becomes takes over what a transition has made of how it stands.
func (k *Request) becomes(s policy.Standing) {
	k.Reason, k.Hurried, k.Ended, k.Waived = s.Reason, s.Hurried, s.Ended, s.Waived
	k.Seen, k.Stopped, k.Ran = s.Seen, s.Stopped, s.Ran
	if !s.Begun && k.BootID != "" {
		k.begun(Beginning{})
	}
}

// begun notes when and where its operation has begun, or that it has not.
func (k *Request) begun(b Beginning) {
	k.BootID, k.Began, k.Clock, k.Cluster = b.BootID, b.At, b.Clock, ID(b.Cluster)
}

// Asked gives what was asked of this host, or nil, and how the last such thing ended, or nil. The
// values are not to be changed.
func (f *State) Asked() (*Request, *End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ask.Ask, f.ask.Last
}

// changeRequest writes what change makes of the request. change gets a copy, or nil when nothing is asked, and
// gives what is asked then; with end, nothing is, and that is how it ended.
func (f *State) changeRequest(change func(k *Request) (next *Request, end *End)) error {
	defer f.writes()()
	f.mu.Lock()
	file := f.ask
	f.mu.Unlock()
	var copied *Request
	if file.Ask != nil {
		value := *file.Ask
		copied = &value
	}
	next, end := change(copied)
	if end != nil {
		file.Last = end
	}
	if next == nil && file.Ask == nil && end == nil || next != nil && file.Ask != nil && *next == *file.Ask {
		return nil
	}
	file.Ask = next
	if err := writeJSON(f.disk, filepath.Join(f.state, requestName), file, true); err != nil {
		return fmt.Errorf("cannot note what was asked of this host: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask = file
	return nil
}

// End gives the end of a request.
func (k *Request) End(code policy.ReasonCode, text string, at time.Time) *End {
	return &End{
		Work: k.Work, Reason: k.Reason, By: k.By, Since: k.Since, Ended: at, Code: code, Text: text,
		Rollout: k.Rollout, RolloutResumed: k.RolloutResumed,
	}
}

// EndRequest forgets what was asked: it has ended in that way.
func (f *State) EndRequest(code policy.ReasonCode, text string, at time.Time) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			return nil, nil
		}
		return nil, k.End(code, text, at)
	})
}

// moves notes a transition of what is asked, if anything is.
func (f *State) moves(transition func(policy.Standing) policy.Standing) error {
	return f.markRequest(func(k *Request) { k.becomes(transition(k.Standing(""))) })
}

// markRequest changes what is asked, if anything is.
func (f *State) markRequest(mark func(k *Request)) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			mark(k)
		}
		return k, nil
	})
}

// ProgramRun is what this host's disk says of the program of a command. That it was started is noted before, so that
// one that was running when the machine lost power is not run again unseen: how it went lies where a reboot clears it.
type ProgramRun struct {
	Ran     policy.HookState `json:"ran,omitempty"`     // running: it was started; done or failed: how it went
	RanText string           `json:"ranText,omitempty"` // for people
	RanIn   string           `json:"ranIn,omitempty"`   // the boot in which it was started
	RanAt   time.Duration    `json:"ranAt,omitempty"`   // when, since that boot
}

// CommandRun names the run of the program of a command.
func (k *Request) CommandRun() hooks.Run {
	run := k.HookRun(hooks.Command)
	run.Program, run.Until = k.Program, k.RanAt+hooks.BeginWithin
	return run
}

// HookRun names the hooks that are run for a request at that time. What is asked anew runs them anew.
func (k *Request) HookRun(when string) hooks.Run {
	return hooks.Run{
		When: when, ID: fmt.Sprintf("%d-%s", k.Since.UnixNano(), when), Work: string(k.Work),
		Reason: k.Reason, By: k.By,
	}
}

// Had tells whether this host has had its turn in a rollout, and that this is not in the record: its end could not be
// written, a person has released its operation, or somebody has written an older record over it. Who lets the rollout
// go on, at a person's word, counts one more, and then it has its turn again.
func (e *End) Had(r record.Rollout) bool {
	return e.Rollout == r.ID && policy.CountedInRollout(e.RolloutResumed, r.Resumed)
}
