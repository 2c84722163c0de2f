// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	godbus "github.com/godbus/dbus/v5"
)

// Errors that callers can test for with errors.Is. Returned errors add what was attempted, the cause, and the remedy.
var (
	// ErrNotInstalled means that there is no such unit or program, that the unit is masked, or that its unit file is
	// invalid.
	ErrNotInstalled = errors.New("not installed")
	// ErrNotPermitted means that polkit, the bus, logind or the file system refused the request, or that an external
	// service has no programs that can be run.
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnavailable means that systemd, the bus, logind or the root helper did not answer in time, that the state of
	// an external service could not be determined, that a program of that service is still running, or that another
	// agent holds the lock of the run directory. A retry may help. The request may still take effect.
	ErrUnavailable = errors.New("not available")
	// ErrEnvironmentUnused means that the unit does not read the environment file, so writing it would have no effect.
	ErrEnvironmentUnused = errors.New("environment file not used")
	// ErrClosed means that the method was called after Close.
	ErrClosed = errors.New("closed")
)

// explainBus adds to the error of a D-Bus call what was attempted and, if known, a sentinel and the remedy. doing is
// the attempted action, such as "start etcd.service".
func explainBus(doing, unit string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[godbus.Error](err); ok {
		return explainReply(doing, unit, e)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return fmt.Errorf("cannot %s: %w", doing, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot %s: %w: systemd did not answer in time: %w: "+
			"check that systemd and the bus are running: \"systemctl status dbus\"", doing, ErrUnavailable, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot %s: %w: %w: run as a user who may use the bus", doing, ErrNotPermitted, err)
	}
	return fmt.Errorf("cannot %s: %w: no connection to the bus: %w: "+
		"check that the bus is running: \"systemctl status dbus\"", doing, ErrUnavailable, err)
}

// explainReply does the same as explainBus for an error that the bus or systemd returned. The error names are from
// org.freedesktop.DBus and from systemd's bus-common-errors.h.
func explainReply(doing, unit string, e godbus.Error) error {
	name := strings.TrimPrefix(strings.TrimPrefix(e.Name, "org.freedesktop.DBus.Error."), "org.freedesktop.")
	// each message below continues after the error, which must not end with a period
	e = godbus.Error{Name: e.Name, Body: []any{strings.TrimSuffix(e.Error(), ".")}}
	if about := e.Error(); strings.Contains(about, "polkit.service") ||
		strings.Contains(about, "org.freedesktop.PolicyKit1") {
		return fmt.Errorf("cannot %s: %w: systemd could not ask polkit: %w: check \"systemctl status polkit\", "+
			"or see quorumd(8) for running without it", doing, ErrNotPermitted, e)
	}
	switch name {
	case "systemd1.NoSuchUnit":
		return fmt.Errorf("cannot %s: %w: %w: install it, "+
			"or name the right unit: \"systemctl list-unit-files --type=service\"", doing, ErrNotInstalled, e)
	case "systemd1.UnitMasked":
		return fmt.Errorf("cannot %s: %w: %w: unless that is intended, run \"systemctl unmask %s\"", doing,
			ErrNotInstalled, e, unit)
	case "systemd1.BadUnitSetting", "systemd1.LoadFailed":
		return fmt.Errorf("cannot %s: %w: %w: correct its unit file: \"systemd-analyze verify %s\"", doing,
			ErrNotInstalled, e, unit)
	case "AccessDenied", "AuthFailed", "InteractiveAuthorizationRequired",
		"PolicyKit1.Error.NotAuthorized", "PolicyKit1.Error.Failed":
		return fmt.Errorf("cannot %s: %w: %w: run as root, "+
			"or have root's helper do it: see --helper in quorumd(8)", doing, ErrNotPermitted, e)
	case "systemd1.OnlyByDependency":
		return fmt.Errorf("cannot %s: systemd refuses: %w: remove RefuseManualStart= and RefuseManualStop= from %s",
			doing, e, unit)
	case "systemd1.TransactionIsDestructive":
		return fmt.Errorf("cannot %s: systemd refuses: %w: wait until the host has finished shutting down or rebooting",
			doing, e)
	}
	if isUnavailable(name) {
		return fmt.Errorf("cannot %s: %w: %w: check that systemd and the bus are running: \"systemctl status dbus\"",
			doing, ErrUnavailable, e)
	}
	return fmt.Errorf("cannot %s: systemd answered %s: %w: see \"systemctl status %s\"", doing, e.Name, e, unit)
}

// isUnavailable reports whether the error of that name means that the call was not delivered or not answered. name
// lacks the usual prefix.
func isUnavailable(name string) bool {
	switch name {
	case "ServiceUnknown", "NameHasNoOwner", "NoReply", "NoServer", "Disconnected", "Timeout", "TimedOut",
		"LimitsExceeded", "systemd1.ShuttingDown":
		return true
	}
	return strings.HasPrefix(name, "Spawn.")
}

// explainFile adds to an error of the file system what was attempted, the remedy and, if access was denied,
// ErrNotPermitted.
func explainFile(doing string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot %s: %w: %w: make it writable for the agent's user", doing, ErrNotPermitted,
			err)
	}
	return fmt.Errorf("cannot %s: %w: check that the directory exists and has free space", doing, err)
}

// explainRead does the same as explainFile for a file that is only read, but adds a remedy only if access was denied.
func explainRead(doing string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot %s: %w: %w: make it readable for the agent's user", doing, ErrNotPermitted, err)
	}
	return fmt.Errorf("cannot %s: %w", doing, err)
}
