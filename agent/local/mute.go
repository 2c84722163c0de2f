// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/health"
)

const mutesName = "mutes.json"

// MaxMutes bounds the mutes of a host.
const MaxMutes = 128

// ErrTooManyMutes says that there are MaxMutes already.
var ErrTooManyMutes = errors.New("there are as many mutes as a host may have")

// Mute is a person's word that a finding which only advises is known, and need not be told for a while. It lies in the
// state directory: the agent may be restarted meanwhile, and the machine too.
type Mute struct {
	Code   health.Code  `json:"code"`
	State  health.State `json:"state"`           // a worse one breaks it
	Count  int          `json:"count,omitempty"` // how many things were found, if that is told; more break it
	Reason string       `json:"reason"`
	By     string       `json:"by"`
	Since  time.Time    `json:"since"`
	Until  time.Time    `json:"until"`
}

// MuteEnd is a mute that holds no more, and why.
type MuteEnd struct {
	Mute
	Why string
}

// Over tells why a mute holds no more by what is found now; empty while it does.
func (m Mute) Over(found []health.Finding, now time.Time) string {
	if !now.Before(m.Until) {
		return "its time is over"
	}
	for _, f := range found {
		switch {
		case f.Code != m.Code:
		case f.Gates != health.Nothing:
			return "it gates " + strings.Join(f.Gates.Names(), ", ") + " now"
		case f.State.WorseThan(m.State):
			return fmt.Sprintf("it has become worse: %s, and was %s", f.State, m.State)
		case m.Count > 0 && f.Count > m.Count:
			return fmt.Sprintf("more is found: %d of them, and it was %d", f.Count, m.Count)
		}
	}
	return ""
}

// Mutes gives those that hold by what is found now, and those that do so no more but are still noted.
func (f *State) Mutes(found []health.Finding, now time.Time) (hold []Mute, over []MuteEnd) {
	f.mu.Lock()
	noted := f.mutes
	f.mu.Unlock()
	for _, m := range noted {
		if why := m.Over(found, now); why != "" {
			over = append(over, MuteEnd{m, why})
		} else {
			hold = append(hold, m)
		}
	}
	return hold, over
}

// Mute notes a mute, in place of one of the same code.
func (f *State) Mute(m Mute) error {
	return f.changeMutes(func(mutes []Mute) ([]Mute, error) {
		mutes = slices.DeleteFunc(mutes, func(before Mute) bool { return before.Code == m.Code })
		if len(mutes) >= MaxMutes {
			return nil, ErrTooManyMutes
		}
		return append(mutes, m), nil
	})
}

// Unmute forgets the mute of a code, and tells whether there was one.
func (f *State) Unmute(code health.Code) (was bool, err error) {
	err = f.changeMutes(func(mutes []Mute) ([]Mute, error) {
		left := slices.DeleteFunc(slices.Clone(mutes), func(m Mute) bool { return m.Code == code })
		was = len(left) < len(mutes)
		return left, nil
	})
	return was, err
}

// EndMutes forgets mutes that are over, unless a person has renewed them meanwhile.
func (f *State) EndMutes(over []MuteEnd) error {
	return f.changeMutes(func(mutes []Mute) ([]Mute, error) {
		return slices.DeleteFunc(mutes, func(m Mute) bool {
			return slices.ContainsFunc(over, func(o MuteEnd) bool { return o.Mute == m })
		}), nil
	})
}

// changeMutes writes what change makes of a copy of the mutes.
func (f *State) changeMutes(change func([]Mute) ([]Mute, error)) error {
	defer f.turn()()
	f.mu.Lock()
	before := f.mutes
	f.mu.Unlock()
	next, err := change(slices.Clone(before))
	if err != nil || slices.Equal(next, before) {
		return err
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, mutesName), next, true); err != nil {
		return fmt.Errorf("cannot note what is muted: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mutes = next
	return nil
}

// openMutes reads the mutes of the agent before. Without what cannot be read more is told, and nothing else changes.
func (f *State) openMutes() {
	var mutes []Mute
	if _, err := readJSON(f.disk, filepath.Join(f.state, mutesName), &mutes); err == nil {
		f.mutes = mutes[:min(len(mutes), MaxMutes)]
	}
}
