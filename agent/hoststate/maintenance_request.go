// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

const requestName = "maintenance.json"

// requestFile holds this host's request, and how the last one ended. It is stored in the state directory because it
// must survive reboots and be known while no etcd answers.
type requestFile struct {
	Ask  *Request `json:"ask,omitempty"`
	Last *End     `json:"last,omitempty"`
	// DefragEnded is when the last request for a defragmentation ended, with any result.
	DefragEnded time.Time `json:"defragEnded,omitzero"`
}

// Request is a request to take this host down and bring it back, as stored on disk.
type Request struct {
	policy.Request

	Since          time.Time     `json:"since"`
	For            time.Duration `json:"for"` // time after Began at which it is overdue; 0 for no limit
	Rollout        string        `json:"rollout,omitempty"`
	RolloutResumed int           `json:"rolloutResumed,omitempty"` // resumptions of the rollout; see End

	// State of a command's program. The start is recorded in advance, because the result is in a directory that a
	// reboot clears. Without the record, a program that was running when the machine lost power would run again.

	RanText string        `json:"ranText,omitempty"` // for display
	RanIn   string        `json:"ranIn,omitempty"`   // the boot during which the program was started
	RanAt   time.Duration `json:"ranAt,omitempty"`   // start time of the program, since that boot

	AskedIn string        `json:"askedIn,omitempty"` // the boot during which the request was made
	BootID  string        `json:"bootID,omitempty"`  // the boot in which the request's operation began, if it has begun
	Began   time.Time     `json:"began,omitzero"`    // when the operation began, in wall-clock time
	Clock   time.Duration `json:"clock,omitempty"`   // when the operation began, in time since boot
	Cluster ID            `json:"cluster,omitzero"`  // the cluster in which the operation began
}

// End is how a request ended.
type End struct {
	control.MaintenanceEnd

	// Rollout is the ID of the rollout that made the request. RolloutResumed is how many times that rollout had been
	// resumed when the request was made or when the operation ended.
	Rollout        string `json:"rollout,omitempty"`
	RolloutResumed int    `json:"rolloutResumed,omitempty"`
}

// Until returns when the request becomes overdue. It returns zero if the request has no time limit or is still queued.
func (k *Request) Until() time.Time {
	if k.For <= 0 || k.Began.IsZero() {
		return time.Time{}
	}
	return k.Began.Add(k.For)
}

// Lasts sets the time limit to d, counted from now if the operation has begun, otherwise from its beginning.
func (k *Request) Lasts(d time.Duration, now time.Time) {
	if k.For = d; !k.Began.IsZero() {
		k.For += now.Sub(k.Began)
	}
}

// At returns the request as the policy's input. bootID is the current boot.
func (k *Request) At(bootID string) policy.Request {
	s := k.Request
	s.Begun, s.OtherBoot = k.BootID != "", cmp.Or(k.BootID, k.AskedIn) != bootID
	return s
}

// becomes records the result of a transition.
func (k *Request) becomes(s policy.Request) {
	if !s.Begun && k.BootID != "" {
		k.begun(Beginning{})
	}
	s.Begun, s.OtherBoot = false, false
	k.Request = s
}

// begun records when and where the request's operation began. The zero value clears the record.
func (k *Request) begun(b Beginning) {
	k.BootID, k.Began, k.Clock, k.Cluster = b.BootID, b.At, b.Clock, ID(b.Cluster)
}

// Asked returns this host's request, or nil, and how the last one ended, or nil. The values must not be changed.
func (f *State) Asked() (*Request, *End) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ask.Ask, f.ask.Last
}

// changeRequest applies change to a copy of the request, or to nil if there is none, and writes the request that change
// returns. If change also returns an end, it is recorded as the end of the last request.
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
		if end.Work == policy.WorkDefrag {
			file.DefragEnded = end.Ended
		}
	}
	if next == nil && file.Ask == nil && end == nil || next != nil && file.Ask != nil && *next == *file.Ask {
		return nil
	}
	file.Ask = next
	if err := writeJSON(f.disk, filepath.Join(f.state, requestName), file, true); err != nil {
		return fmt.Errorf("cannot save the request: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask = file
	return nil
}

// Maintenance returns the request as operators see it. The caller adds the observed state of the request's operation.
func (k *Request) Maintenance() control.Maintenance {
	return control.Maintenance{
		Work: k.Work, Command: k.Program, Reason: k.Reason, By: k.By, Since: k.Since, Until: k.Until(),
		KeepRunning: k.KeepRunning, External: k.External, Interruptible: k.Interruptible, Recalled: k.Recalled,
		Rollout: k.Rollout,
	}
}

// End returns how the request ended.
func (k *Request) End(code policy.ReasonCode, text string, at time.Time) *End {
	return &End{
		control.MaintenanceEnd{
			Work: k.Work, Reason: k.Reason, By: k.By, Since: k.Since, Ended: at, Code: code, Text: text,
		},
		k.Rollout, k.RolloutResumed,
	}
}

// EndRequest ends the request with a code.
func (f *State) EndRequest(code policy.ReasonCode, text string, at time.Time) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil {
			return nil, nil
		}
		return nil, k.End(code, text, at)
	})
}

// moves applies a transition to the request, if there is one.
func (f *State) moves(transition func(policy.Request) policy.Request) error {
	return f.markRequest(func(k *Request) { k.becomes(transition(k.At(""))) })
}

// markRequest changes the request, if there is one.
func (f *State) markRequest(mark func(k *Request)) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			mark(k)
		}
		return k, nil
	})
}

// CommandRun returns the run that takes place while etcd is down: of a command's program, or of a defragmentation.
func (k *Request) CommandRun() hooks.Run {
	when := hooks.Command
	if k.Work == policy.WorkDefrag {
		when = hooks.Defrag
	}
	run := k.HookRun(when)
	run.Program, run.Until = k.Program, k.RanAt+hooks.BeginWithin
	return run
}

// HookRun returns the run of the request's hooks for that occasion. Every request has its own runs.
func (k *Request) HookRun(when string) hooks.Run {
	return hooks.Run{
		When: when, ID: fmt.Sprintf("%d-%s", k.Since.UnixNano(), when), Work: string(k.Work),
		Reason: k.Reason, By: k.By,
	}
}

// Had reports whether this host has completed its part of a rollout, even if the rollout record does not show it. The
// record does not show it if writing the end failed, if an operator released the operation, or if an older record
// overwrote it. When an operator resumes the rollout, Resumed is incremented and the host's part is due again.
func (e *End) Had(r record.Rollout) bool {
	return e.Rollout == r.ID && policy.CountedInRollout(e.RolloutResumed, r.Resumed)
}
