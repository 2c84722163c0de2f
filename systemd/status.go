// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd starts, stops and watches the one service that an agent manages.
//
// There are three implementations with the same methods. Service drives a systemd unit over D-Bus. Process runs a plain
// child process, for development, containers and hosts without systemd. External observes a service that another
// program runs, such as a kubelet, and uses the operator's programs to start and stop it, if there are any.
//
// All promise:
//
//   - Start, Stop and Restart only queue the work and return within a few seconds. Status shows its progress: State,
//     Job and LastJob. Each can be repeated at any time.
//   - The service never depends on the agent. An agent that ends, even by kill -9, leaves the service as it is, and the
//     next agent finds it again.
//   - Every call is bounded, even if the bus, systemd or another agent does not answer.
//   - Nothing is ever enabled, disabled or masked.
//
// Notifier reports the agent's own state to its service manager.
package systemd

import (
	"fmt"
	"slices"
	"time"
)

// State is the state of a service, in systemd's terms.
type State int

// The states. A unit that did not stop in time and was killed is Failed under systemd and Inactive under Process; both
// have the Result "timeout".
const (
	Unknown      State = iota // unknown, the zero value; must not be treated as Inactive
	Inactive                  // not running, as intended
	Activating                // being started, or waiting to be restarted by systemd
	Active                    // running
	Deactivating              // being stopped
	Failed                    // not running, after an unexpected end
)

func stateNames() []string {
	return []string{"unknown", "inactive", "activating", "active", "deactivating", "failed"}
}

// String returns the state as systemd writes it: "active", "failed" and so on.
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

// Status is the state of a service at one moment.
type Status struct {
	// State is the current state.
	State State
	// PID is the main process, 0 if there is none.
	PID int
	// Since is how long the service has been in this state, by the clock that starts at boot, which is independent of
	// the wall clock. It is 0 if unknown, for example because the service was not started since boot, or because
	// systemd has unloaded the unit. systemd unloads an inactive unit, and with it Result, ExitCode and Signal, as soon
	// as no other unit refers to it. Enabling a unit creates such a reference.
	Since time.Duration
	// Result is how the last run ended, in systemd's terms: "success", "exit-code", "signal", "core-dump", "timeout",
	// "watchdog", "start-limit-hit", "resources" and so on; "success" while there is no problem. Process adds "unknown"
	// (the process ended while the agent was not its parent) and "reboot" (a reboot ended the process). External
	// describes a failed start in words.
	Result string
	// ExitCode is the exit code of the last main process; -1 if it has not ended, was ended by a signal, or is unknown,
	// as with os.ProcessState.
	ExitCode int
	// Signal is the signal that ended the last main process, such as "SIGKILL"; "" if none or unknown.
	Signal string
	// Job is the pending job: "start", "stop", "restart" or another of systemd's job types; "" if none. A job that was
	// queued by the same Service stays here until its result is known.
	Job string
	// LastJob is the result of the last job queued by the same Service or Process: "done", "failed", "timeout",
	// "canceled", "dependency", "skipped" and so on; "unknown" if its end was missed; "" if none was queued or it is
	// still pending. A Service with Orders reports no result. Process keeps it on disk, so that the next agent reports
	// it, too. External reports only "failed", if a program has failed, and "timeout", if the service has not started
	// in time.
	LastJob string
	// LoadState is "loaded" if the unit can be started; otherwise "not-found", "masked", "bad-setting" or "error".
	// Process reports only "loaded" and "not-found", and External only "loaded".
	LoadState string
	// UnitFileState is what systemctl is-enabled prints: "enabled", "disabled", "static" and so on; empty if unknown,
	// and under Process and External.
	UnitFileState string
	// Program is the path of the program that a start runs first; empty if unknown, and under Process and External.
	Program string
	// ByPrograms means, for External, that the operator's programs start and stop it.
	ByPrograms bool
}

// NotAtBoot reports whether the unit does not start after a boot, although it could be enabled.
func (s Status) NotAtBoot() bool {
	return slices.Contains([]string{"disabled", "linked", "linked-runtime", "enabled-runtime"}, s.UnitFileState)
}

// Installed reports whether the service can be started at all: it exists, is valid and not masked.
func (s Status) Installed() bool { return s.LoadState == "loaded" }
