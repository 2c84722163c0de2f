// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// ErrOtherBoot means that a snapshot is from before the last boot, so its times are meaningless. For the same reason, a
// reboot ends FAILED.
var ErrOtherBoot = errors.New("it is from before the last boot")

var errImpossible = errors.New("it has impossible times")

const (
	snapshotVersion = 1
	snapshotLimit   = 1 << 20
)

// snapshot contains what survives a restart of the agent: the states, and what each check remembers. Of the samples,
// that is only the outliers.
type snapshot struct {
	Version int              `json:"version"`
	Boot    string           `json:"boot"`
	At      time.Duration    `json:"at"`
	State   State            `json:"state"`
	Since   time.Duration    `json:"since"`
	Checks  map[string]track `json:"checks"`
	// Memory contains what each check remembers in addition to its state, by the name of the check. The memory of the
	// fsync check is in Disk instead.
	Disk   json.RawMessage            `json:"disk"`
	Memory map[string]json.RawMessage `json:"memory,omitempty"`
}

func (s *snapshot) remember(name string, memory any) error {
	if memory == nil {
		return nil
	}
	data, err := json.Marshal(memory)
	if err != nil {
		return err
	}
	if name == fsyncName {
		s.Disk = data
		return nil
	}
	if s.Memory == nil {
		s.Memory = map[string]json.RawMessage{}
	}
	s.Memory[name] = data
	return nil
}

// of returns the memory of a check, and false if it has none.
func (s *snapshot) of(name string) (json.RawMessage, bool) {
	if name == fsyncName {
		return s.Disk, true
	}
	data, known := s.Memory[name]
	return data, known
}

// Snapshot returns what [Restore] needs, as JSON. boot is the boot ID of the machine.
func (j *Judge) Snapshot(boot string) ([]byte, error) {
	s := snapshot{
		Version: snapshotVersion, Boot: boot, At: j.now, State: j.state, Since: j.since, Checks: map[string]track{},
	}
	for _, c := range j.checks {
		s.Checks[c.Name] = *c.track
		if err := s.remember(c.Name, c.memory()); err != nil {
			return nil, fmt.Errorf("cannot write the health snapshot: %w", err)
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cannot write the health snapshot: %w", err)
	}
	return data, nil
}

// Restore returns a judge with the snapshot's memory: the states, the times of recoveries, and what each check
// remembered. The disk is no longer qualified if the limits of the qualifying run have changed. boot is the boot ID of
// the machine, now the time on the clock of [Input]. On an error, including [ErrOtherBoot], the caller starts with
// [New].
func Restore(data []byte, t Thresholds, boot string, now time.Duration) (*Judge, error) {
	j, err := New(t)
	if err != nil {
		return nil, err
	}
	s, err := readSnapshot(data, boot, now)
	if err != nil {
		return nil, fmt.Errorf("cannot use the health snapshot: %w", err)
	}
	if err := j.recall(s, now); err != nil {
		return nil, fmt.Errorf("cannot use the health snapshot: %w", err)
	}
	return j, nil
}

func readSnapshot(data []byte, boot string, now time.Duration) (snapshot, error) {
	var s snapshot
	if len(data) > snapshotLimit {
		return s, fmt.Errorf("it has %d bytes, more than %d", len(data), snapshotLimit)
	}
	var head struct{ Version int }
	if err := json.Unmarshal(data, &head); err != nil {
		return s, err
	}
	if head.Version != snapshotVersion {
		return s, fmt.Errorf("it has version %d, want %d", head.Version, snapshotVersion)
	}
	if err := strictly(data, &s); err != nil {
		return s, err
	}
	if s.Boot != boot {
		return s, ErrOtherBoot
	}
	return s, s.check(now)
}

// strictly decodes JSON and rejects unknown fields.
func strictly(data []byte, to any) error {
	from := json.NewDecoder(bytes.NewReader(data))
	from.DisallowUnknownFields()
	if err := from.Decode(to); err != nil {
		return err
	}
	if _, err := from.Token(); err != io.EOF {
		return errors.New("trailing data")
	}
	return nil
}

// check returns an error unless the time of the snapshot is between the boot and now, and the times of the states and
// recoveries are between the boot and the time of the snapshot. Each check itself checks its memory.
func (s snapshot) check(now time.Duration) error {
	moments := []time.Duration{s.Since}
	for _, t := range s.Checks {
		moments = append(moments, t.Since)
		for _, returns := range t.Returns {
			moments = append(moments, returns...)
		}
	}
	switch {
	case s.At < 0 || s.At > now:
		return fmt.Errorf("it was taken %s after the boot, but the machine has run for %s", s.At, now)
	case !past(s.At, moments...):
		return errImpossible
	}
	return nil
}

// past reports whether all moments are between the boot and the given time.
func past(at time.Duration, moments ...time.Duration) bool {
	return slices.Min(moments) >= 0 && slices.Max(moments) <= at
}

func (j *Judge) recall(s snapshot, now time.Duration) error {
	j.begun, j.now, j.state, j.since = true, now, s.State, s.Since
	j.newest = s.At // a new sample of the probe must have been completed later
	for _, c := range j.checks {
		was, known := s.Checks[c.Name]
		if !known { // the snapshot was written before this check existed
			c.Since = now
			c.begin(now)
			continue
		}
		reached := slices.ContainsFunc(c.rules, func(r rule) bool {
			return r.to == was.State && r.code == was.Code
		})
		if !reached {
			return fmt.Errorf("it has the impossible state %s %q of %s", was.State, was.Code, c.Name)
		}
		*c.track = was
		if memory, kept := s.of(c.Name); kept {
			if err := c.recall(memory, s.At, now); err != nil {
				return err
			}
		}
	}
	return nil
}
