// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

const askName = "maintenance.json"

// askFile is what was asked of this host and how the last such thing ended. It lies in the state
// directory: it must be known across reboots, and while no etcd answers.
type askFile struct {
	Ask  *ask    `json:"ask,omitempty"`
	Last *askEnd `json:"last,omitempty"`
}

// ask is a wish to take this host down and bring it back.
type ask struct {
	Work        policy.Work   `json:"work"`
	Reason      string        `json:"reason"`
	By          string        `json:"by"`
	Since       time.Time     `json:"since"`
	For         time.Duration `json:"for"` // after which it is overdue, once its operation has begun; 0: never
	KeepRunning bool          `json:"keepRunning,omitempty"`
	External    bool          `json:"external,omitempty"`
	Hurried     bool          `json:"hurried,omitempty"` // the machine goes down within seconds, whatever is decided
	Rollout     string        `json:"rollout,omitempty"`
	RolloutAt   time.Time     `json:"rolloutAt,omitzero"` // the rollout's Since then
	Program     string        `json:"program,omitempty"`  // of a command
	commandRun
	Over    bool   `json:"over,omitempty"`    // a person has said so, or the operation is about to be ended
	Waived  bool   `json:"waived,omitempty"`  // a person has said so although the hooks had failed that run after it
	Stopped bool   `json:"stopped,omitempty"` // etcd was stopped for it and has not been started since
	BootID  string `json:"bootID,omitempty"`  // of the boot in which its operation began
	Seen    bool   `json:"seen,omitempty"`    // its operation was seen in etcd, and is in flight until it has ended or was released
	AskedIn string `json:"askedIn,omitempty"` // the boot in which it was asked

	Began   time.Time     `json:"began,omitzero"`   // its operation, if one has
	Clock   time.Duration `json:"clock,omitempty"`  // since boot, when it began
	Cluster record64      `json:"cluster,omitzero"` // in which it began
}

// overdue tells whether that time is over; one that is zero never is.
func overdue(until, now time.Time) bool { return !until.IsZero() && now.After(until) }

// askEnd is how an ask ended.
type askEnd struct {
	Work   policy.Work       `json:"work"`
	Reason string            `json:"reason"`
	By     string            `json:"by"`
	Since  time.Time         `json:"since"`
	Ended  time.Time         `json:"ended"`
	Code   policy.ReasonCode `json:"code"`
	Text   string            `json:"text"`

	// Rollout is the one that has asked for it, and RolloutSince how that stood then.
	Rollout      string    `json:"rollout,omitempty"`
	RolloutSince time.Time `json:"rolloutSince,omitzero"`
}

// until gives when it becomes overdue; zero for never, and while it waits for its turn, which may take as long as it
// likes.
func (k *ask) until() time.Time {
	if k.For <= 0 || k.Began.IsZero() {
		return time.Time{}
	}
	return k.Began.Add(k.For)
}

// lasts has it last for that long from now on, or once its turn has come.
func (k *ask) lasts(d time.Duration, now time.Time) {
	if k.For = d; !k.Began.IsZero() {
		k.For += now.Sub(k.Began)
	}
}

// over tells whether nothing more is to be taken down for it.
func (k *ask) over(bootID string) bool {
	return k.Over || (k.Work == policy.WorkReboot && k.rebooted(bootID))
}

func (k *ask) rebooted(bootID string) bool { return k.BootID != "" && k.BootID != bootID }

// outlastsReboot tells whether the machine may go down, too, when it is safe to touch for this.
func (k *ask) outlastsReboot() bool {
	return !k.Over && (k.Work == policy.WorkMaintenance || k.Work == policy.WorkReboot)
}

// tooLate tells whether the machine was rebooted by somebody else before its turn had come: nobody will
// reboot it again.
func (k *ask) tooLate(bootID string) bool { return k.External && k.BootID == "" && k.AskedIn != bootID }

// asked gives what was asked of this host, or nil, and how the last such thing ended, or nil. The
// values are not to be changed.
func (f *stateFiles) asked() (*ask, *askEnd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ask.Ask, f.ask.Last
}

// changeAsk writes what change makes of the ask. change gets a copy, or nil when nothing is asked, and
// gives what is asked then; with end, nothing is, and that is how it ended.
func (f *stateFiles) changeAsk(change func(k *ask) (next *ask, end *askEnd)) error {
	defer f.turn()()
	f.mu.Lock()
	file := f.ask
	f.mu.Unlock()
	var copied *ask
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
	if err := writeJSON(f.disk, filepath.Join(f.state, askName), file, true); err != nil {
		return fmt.Errorf("cannot note what was asked of this host: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask = file
	return nil
}

// end gives the end of an ask.
func (k *ask) end(code policy.ReasonCode, text string, at time.Time) *askEnd {
	return &askEnd{
		Work: k.Work, Reason: k.Reason, By: k.By, Since: k.Since, Ended: at, Code: code, Text: text,
		Rollout: k.Rollout, RolloutSince: k.RolloutAt,
	}
}

// endAsk forgets what was asked: it has ended in that way.
func (f *stateFiles) endAsk(code policy.ReasonCode, text string, at time.Time) error {
	return f.changeAsk(func(k *ask) (*ask, *askEnd) {
		if k == nil {
			return nil, nil
		}
		return nil, k.end(code, text, at)
	})
}

// markAsk changes what is asked, if anything is.
func (f *stateFiles) markAsk(mark func(k *ask)) error {
	return f.changeAsk(func(k *ask) (*ask, *askEnd) {
		if k != nil {
			mark(k)
		}
		return k, nil
	})
}
