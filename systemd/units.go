// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"path/filepath"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
	sdunit "github.com/coreos/go-systemd/v22/unit"
)

// Units queries systemd about any unit. It changes nothing.
type Units struct {
	Dial DialFunc // nil for systemd's private socket, which works without a bus, but only for root
}

// SystemBus connects to systemd over the system bus. Users other than root must use it.
func SystemBus(ctx context.Context) (*sddbus.Conn, error) {
	return sddbus.NewSystemConnectionContext(ctx)
}

// Command returns the first command of the unit's ExecStart=, the program first. Variables are not replaced.
func (u Units) Command(ctx context.Context, name string) ([]string, error) {
	p, err := u.look(ctx, name)
	if err != nil {
		return nil, err
	}
	commands := property[[][]any](p, "ExecStart")
	if len(commands) == 0 || len(commands[0]) < 2 {
		return nil, errors.New("systemd reports no ExecStart= for " + name)
	}
	args, _ := commands[0][1].([]string)
	return args, nil
}

// Environment returns the variables that the unit itself sets, as NAME=value, without those from its environment files.
func (u Units) Environment(ctx context.Context, name string) ([]string, error) {
	p, err := u.look(ctx, name)
	if err != nil {
		return nil, err
	}
	return property[[]string](p, "Environment"), nil
}

// Starts reports whether the unit runs, is being started, or starts at boot.
func (u Units) Starts(ctx context.Context, name string) (bool, error) {
	p, err := u.look(ctx, name)
	return p.starts(), err
}

// starts reports whether a unit with these properties runs, is being started, or starts at boot. A unit that is enabled
// only at runtime does not start after the next boot.
func (p properties) starts() bool {
	return property[string](p, "UnitFileState") == "enabled" || p.state() == Active || p.state() == Activating
}

// Mounted reports whether every mount point at or above path that fstab(5) or a mount unit defines is mounted.
func (u Units) Mounted(ctx context.Context, path string) (bool, error) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		p, err := u.look(ctx, sdunit.UnitNamePathEscape(path)+".mount")
		if err != nil || property[string](p, "LoadState") == "loaded" && p.state() != Active {
			return false, err
		}
		if path == filepath.Dir(path) {
			return true, nil
		}
	}
}

func (u Units) look(ctx context.Context, name string) (properties, error) {
	dial := u.Dial
	if dial == nil {
		dial = sddbus.NewSystemdConnectionContext
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, explainBus("inspect "+name, name, err)
	}
	defer conn.Close()
	p, err := conn.GetAllPropertiesContext(ctx, name)
	if err != nil {
		return nil, explainBus("inspect "+name, name, err)
	}
	return p, nil
}
