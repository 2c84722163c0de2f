// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

const mutesName = "mutes.json"

// Mutes returns the mutes in force, given the current findings, and those that have ended but are still recorded.
func (f *State) Mutes(found []health.Finding, now time.Time) (hold []health.Mute, over []health.MuteEnd) {
	f.mu.Lock()
	noted := f.mutes
	f.mu.Unlock()
	for _, m := range noted {
		if why := m.Over(found, now); why != "" {
			over = append(over, health.MuteEnd{Mute: m, Why: why})
		} else {
			hold = append(hold, m)
		}
	}
	return hold, over
}

// Mute records a mute and replaces an earlier one for the same code. The mute is refused if there are too many others.
func (f *State) Mute(m health.Mute) (refused *policy.Refusal, err error) {
	err = f.changeMutes(func(mutes []health.Mute) []health.Mute {
		others := slices.DeleteFunc(slices.Clone(mutes), func(o health.Mute) bool { return o.Code == m.Code })
		if refused = policy.AgainstMoreMutes(len(others)); refused != nil {
			return mutes
		}
		return append(others, m)
	})
	return refused, err
}

// Unmute removes the mute of a code and reports whether there was one.
func (f *State) Unmute(code health.Code) (was bool, err error) {
	err = f.changeMutes(func(mutes []health.Mute) []health.Mute {
		left := slices.DeleteFunc(slices.Clone(mutes), func(m health.Mute) bool { return m.Code == code })
		was = len(left) < len(mutes)
		return left
	})
	return was, err
}

// EndMutes removes ended mutes, except those that an operator has renewed since.
func (f *State) EndMutes(over []health.MuteEnd) error {
	return f.changeMutes(func(mutes []health.Mute) []health.Mute {
		return slices.DeleteFunc(mutes, func(m health.Mute) bool {
			return slices.ContainsFunc(over, func(o health.MuteEnd) bool { return o.Mute == m })
		})
	})
}

// changeMutes applies change to a copy of the mutes and writes the result.
func (f *State) changeMutes(change func([]health.Mute) []health.Mute) error {
	defer f.writes()()
	f.mu.Lock()
	before := f.mutes
	f.mu.Unlock()
	next := change(slices.Clone(before))
	if slices.Equal(next, before) {
		return nil
	}
	if err := writeJSON(f.disk, filepath.Join(f.state, mutesName), next, true); err != nil {
		return fmt.Errorf("cannot save the mutes: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mutes = next
	return nil
}

// openMutes reads the recorded mutes. If that fails, the only effect is that muted findings are reported.
func (f *State) openMutes() {
	var mutes []health.Mute
	if _, err := readJSON(f.disk, filepath.Join(f.state, mutesName), &mutes); err == nil {
		f.mutes = mutes[:min(len(mutes), policy.MaxMutes)]
	}
}
