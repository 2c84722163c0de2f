// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	godbus "github.com/godbus/dbus/v5"
)

func TestErrorsHaveARemedyAndASentinel(t *testing.T) {
	t.Parallel()
	reply := func(name, message string) error { return godbus.Error{Name: name, Body: []any{message}} }
	permission := &os.PathError{Op: "open", Path: "/var/lib/quorumd/etcd.env", Err: syscall.EACCES}
	const doing, etcd = "start etcd.service", "etcd.service"
	var text strings.Builder
	for _, c := range []struct {
		err error
		is  error
	}{
		{
			explainBus(doing, etcd, reply("org.freedesktop.systemd1.NoSuchUnit", "Unit etcd.service not found.")),
			ErrNotInstalled,
		},
		{
			explainBus(doing, etcd, reply("org.freedesktop.systemd1.UnitMasked", "Unit etcd.service is masked.")),
			ErrNotInstalled,
		},
		{
			explainBus(doing, etcd, reply("org.freedesktop.systemd1.UnitMasked", "Unit polkit.service is masked.")),
			ErrNotPermitted,
		},
		{explainBus(doing, etcd, reply("org.freedesktop.DBus.Error.TimedOut",
			"Failed to activate service 'org.freedesktop.PolicyKit1': timed out")), ErrNotPermitted},
		{explainBus(doing, etcd, reply("org.freedesktop.systemd1.BadUnitSetting",
			"Unit etcd.service has a bad unit file setting.")), ErrNotInstalled},
		{explainBus(doing, etcd, reply("org.freedesktop.systemd1.LoadFailed",
			"Unit etcd.service failed to load properly.")), ErrNotInstalled},
		{
			explainBus(doing, etcd, reply("org.freedesktop.DBus.Error.AccessDenied", "Permission denied")),
			ErrNotPermitted,
		},
		{explainBus(doing, etcd, reply("org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
			"Interactive authentication required.")), ErrNotPermitted},
		{explainBus(doing, etcd, reply("org.freedesktop.DBus.Error.ServiceUnknown",
			"The name org.freedesktop.systemd1 was not provided by any .service files")), ErrUnavailable},
		{explainBus(doing, etcd, reply("org.freedesktop.DBus.Error.Spawn.ChildExited",
			"Process org.freedesktop.systemd1 exited with status 1")), ErrUnavailable},
		{explainBus(doing, etcd, reply("org.freedesktop.systemd1.ShuttingDown",
			"Refusing activation, D-Bus is shutting down.")), ErrUnavailable},
		{explainBus(doing, etcd, reply("org.freedesktop.systemd1.TransactionIsDestructive",
			"Transaction for etcd.service/start is destructive (reboot.target has 'start' job queued, but 'stop' is "+
				"included in transaction).")), nil},
		{explainBus(doing, etcd, reply("org.freedesktop.systemd1.OnlyByDependency",
			"Operation refused, unit etcd.service may be requested by dependency only (it is configured to refuse "+
				"manual start/stop).")), nil},
		{explainBus(doing, etcd, reply("org.example.Odd", "Something odd")), nil},
		{explainBus(doing, etcd, fmt.Errorf("waiting: %w", context.DeadlineExceeded)), ErrUnavailable},
		{explainBus(doing, etcd, context.Canceled), context.Canceled},
		{
			explainBus(doing, etcd, &os.PathError{
				Op: "dial", Path: "/run/dbus/system_bus_socket",
				Err: syscall.ENOENT,
			}),
			ErrUnavailable,
		},
		{
			explainBus(doing, etcd, &os.PathError{
				Op: "dial", Path: "/run/dbus/system_bus_socket",
				Err: syscall.EACCES,
			}),
			ErrNotPermitted,
		},
		{explainBus(doing, etcd, io.EOF), ErrUnavailable},
		{explainFile("set the environment of etcd.service", permission), ErrNotPermitted},
		{explainFile("set the environment of etcd.service",
			&os.PathError{Op: "open", Path: "/none/x", Err: syscall.ENOENT}), fs.ErrNotExist},
	} {
		for _, sentinel := range []error{ErrNotInstalled, ErrNotPermitted, ErrUnavailable, ErrEnvironmentUnused} {
			if got, want := errors.Is(c.err, sentinel), c.is == sentinel; got != want {
				t.Errorf("errors.Is %q: %v, for %v", sentinel, got, c.err)
			}
		}
		if c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v does not wrap %v", c.err, c.is)
		}
		fmt.Fprintln(&text, c.err)
	}
	s := newService(t, Options{Unit: "etcd.service", EnvironmentFile: "/var/lib/quorumd/100%.env"})
	fmt.Fprintln(&text, s.dropIn())
	golden(t, "errors.golden", text.String())
	if err := explainBus(doing, etcd, nil); err != nil {
		t.Error(err)
	}
}
