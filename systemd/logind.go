// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

const (
	logindName      = "org.freedesktop.login1"
	logindPath      = "/org/freedesktop/login1"
	logindInterface = "org.freedesktop.login1.Manager"
	propertyGet     = "org.freedesktop.DBus.Properties.Get"
)

// LogindOptions configure the connection to logind. All fields are optional.
type LogindOptions struct {
	// Dial connects to the bus; nil for godbus.ConnectSystemBus. The returned connection must not outlive ctx.
	Dial func(ctx context.Context) (*godbus.Conn, error)
	// Logger logs important events; nil for slog.Default.
	Logger *slog.Logger
}

// Logind is a client of systemd-logind. It reboots the machine, and delays a shutdown with an inhibitor lock. Safe for
// concurrent use.
type Logind struct {
	dial  func(ctx context.Context) (*godbus.Conn, error)
	log   *slog.Logger
	retry time.Duration // time between the first two attempts to reach logind; doubles with each further attempt
}

// NewLogind returns a Logind, which connects at its first use.
func NewLogind(o LogindOptions) *Logind {
	l := &Logind{dial: o.Dial, log: o.Logger, retry: time.Second}
	if l.dial == nil {
		l.dial = func(ctx context.Context) (*godbus.Conn, error) {
			return godbus.ConnectSystemBus(godbus.WithContext(ctx))
		}
	}
	if l.log == nil {
		l.log = slog.Default()
	}
	return l
}

// Reboot requests an orderly reboot of the machine. It returns within 3 s: nil if logind has accepted the request,
// otherwise ErrNotPermitted, ErrUnavailable or a different error. While an operator or a package manager holds a block
// lock, logind refuses.
func (l *Logind) Reboot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	conn, err := l.dial(ctx)
	if err == nil {
		defer func() { _ = conn.Close() }()
		const interactive = false // no operator can be asked for a password
		err = conn.Object(logindName, logindPath).CallWithContext(ctx, logindInterface+".Reboot", 0, interactive).Err
	}
	return explainLogind("reboot this machine", mayReboot, preferContext(ctx, err))
}

// rebootRule is the command with which root lets quorumd's user reboot the machine.
const rebootRule = "cp /usr/share/quorumd/polkit/51-quorumd-reboot.rules /etc/polkit-1/rules.d/"

// CheckReboot returns an error if logind would refuse a reboot now or does not answer.
func (l *Logind) CheckReboot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	const doing = "reboot this machine"
	conn, err := l.dial(ctx)
	if err != nil {
		return explainLogind(doing, mayReboot, preferContext(ctx, err))
	}
	defer func() { _ = conn.Close() }()
	var can string
	err = conn.Object(logindName, logindPath).CallWithContext(ctx, logindInterface+".CanReboot", 0).Store(&can)
	if err != nil {
		return explainLogind(doing, mayReboot, preferContext(ctx, err))
	}
	if can != "yes" {
		return fmt.Errorf("cannot %s: %w: logind answers %q to CanReboot → check for an inhibitor lock "+
			"(systemd-inhibit --list), or install the polkit rule: %s", doing, ErrNotPermitted, can, rebootRule)
	}
	return nil
}

const (
	mayReboot = "check for an inhibitor lock (systemd-inhibit --list); to allow a reboot, install the polkit rule: " +
		rebootRule + "; without polkit see quorumd(8)"
	mayDelay = "install polkit, for which quorumd's package has the rules; without polkit see quorumd(8)"
)

// explainLogind does the same as explainBus for the error of a call to logind. remedy is what to do if logind denies
// the call.
func explainLogind(doing, remedy string, err error) error {
	reply, is := errors.AsType[godbus.Error](err)
	if !is {
		return explainBus(doing, "systemd-logind.service", err)
	}
	switch reply.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
		"org.freedesktop.DBus.Error.AuthFailed":
		return fmt.Errorf("cannot %s: %w: logind answers: %w → %s", doing, ErrNotPermitted, reply, remedy)
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.systemd1.NoSuchUnit",
		"org.freedesktop.systemd1.UnitMasked":
		return fmt.Errorf("cannot %s: %w: there is no logind here: %w: install it (Debian: libpam-systemd) or unmask "+
			"systemd-logind.service",
			doing, ErrUnavailable, reply)
	}
	return explainReply(doing, "systemd-logind.service", reply)
}
