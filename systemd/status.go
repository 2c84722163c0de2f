// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd starts, stops and watches the one service that an agent looks after.
//
// There are three implementations with the same methods. Service drives a systemd unit over D-Bus.
// Process runs a plain child process, for development, containers and hosts without systemd. External sees one that
// others run, such as a kubelet, and has the operator's programs start and stop it, if there are any.
//
// What all promise:
//
//   - Start, Stop and Restart only queue the work and return within a few seconds. How it goes is
//     seen through Status: State, Job and LastJob. Each may be repeated at any time.
//   - The service never depends on the agent. An agent that ends, by kill -9 too, leaves the
//     service as it is, and the next agent finds it again.
//   - Every call is bounded, also when the bus, systemd or another agent does not answer.
//   - Nothing is ever enabled, disabled or masked.
//
// Notifier is the other direction: what the agent itself tells its own service manager.
package systemd

import (
	"fmt"
	"slices"
	"time"
)

// State is the state of a service, in systemd's own words.
type State int

// The states. A unit that did not stop in time and had to be killed is Failed under systemd and
// Inactive under Process; both say Result "timeout".
const (
	Unknown      State = iota // not known, the zero value; never to be read as Inactive
	Inactive                  // not running, and that is in order
	Activating                // being started, or waiting to be restarted by systemd
	Active                    // running
	Deactivating              // being stopped
	Failed                    // not running, and it should not have ended in the way it did
)

func stateNames() []string {
	return []string{"unknown", "inactive", "activating", "active", "deactivating", "failed"}
}

// String gives the state as systemd writes it: "active", "failed" and so on.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames()) {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return stateNames()[s]
}

// MarshalText writes the state as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote; any other word is an error.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames(), string(text))
	if i < 0 {
		return fmt.Errorf("cannot read %q as a state of a service", text)
	}
	*s = State(i)
	return nil
}

// Status is what one look at a service showed.
type Status struct {
	// State is what the service does now.
	State State
	// PID is the main process, 0 if there is none.
	PID int
	// Since is how long the service has been in this state, by the clock that starts at boot, so
	// that a wall clock that is set does not matter. It is 0 if that is not known: never started
	// since boot, or forgotten. systemd forgets all about a unit that is inactive once no other
	// refers to it, as one does for a unit that is enabled; Result, ExitCode and Signal go with it.
	Since time.Duration
	// Result says how the last run ended, in systemd's words: "success", "exit-code", "signal",
	// "core-dump", "timeout", "watchdog", "start-limit-hit", "resources" and so on; "success" while
	// all is well. Process adds "unknown" (it ended while nobody watched) and "reboot" (lost with
	// the boot it belonged to).
	Result string
	// ExitCode is the exit code of the last main process; -1 if it has not ended, ended by a
	// signal, or is not known, as with os.ProcessState.
	ExitCode int
	// Signal is the signal that ended the last main process, such as "SIGKILL"; "" if none or unknown.
	Signal string
	// Job is the work still pending: "start", "stop", "restart" or another of systemd's job types;
	// "" if none. A job that was queued through this value stays here until its result is known.
	Job string
	// LastJob is the result of the last job queued through this value: "done", "failed", "timeout",
	// "canceled", "dependency", "skipped" and so on; "unknown" if it ended unseen; "" if none was
	// queued or it is still pending. Process keeps it on disk, so that the next agent sees it too.
	LastJob string
	// LoadState is "loaded" if the unit can be started; else "not-found", "masked", "bad-setting",
	// "error". Process knows "loaded" and "not-found".
	LoadState string
	// UnitFileState is what systemctl is-enabled says: "enabled", "disabled", "static" and so on; empty if that is not
	// known, and under Process.
	UnitFileState string
	// Program is what a start runs first; empty if that is not known, and under Process.
	Program string
	// ByPrograms says of External that the operator's programs start and stop it.
	ByPrograms bool
}

// NotAtBoot says whether nothing starts the unit after a boot, although it could be enabled.
func (s Status) NotAtBoot() bool {
	return slices.Contains([]string{"disabled", "linked", "linked-runtime", "enabled-runtime"}, s.UnitFileState)
}

// Installed says whether the service can be started at all: it is there, valid and not masked.
func (s Status) Installed() bool { return s.LoadState == "loaded" }
