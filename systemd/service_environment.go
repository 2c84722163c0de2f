// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
)

// SetEnvironment replaces the content of the unit's environment file with vars. The change takes effect when the unit
// starts next. The file is written only if systemd reports that the unit reads it; otherwise the error is
// ErrEnvironmentUnused and shows the drop-in to add. Values with line breaks, with other control characters except
// tabs, or with invalid UTF-8 are refused. A value is never part of an error.
func (s *Service) SetEnvironment(ctx context.Context, vars map[string]string) error {
	doing := "set the environment of " + s.unit
	if s.environmentFile == "" {
		return fmt.Errorf("cannot %s: %w", doing, errNoEnvironmentFile)
	}
	if _, err := formatEnvironment(vars); err != nil {
		return fmt.Errorf("cannot %s: %w", doing, err)
	}
	var p properties
	err := s.bus.call(ctx, true, func(ctx context.Context, conn *sddbus.Conn) error {
		var err error
		p, err = conn.GetAllPropertiesContext(ctx, s.unit)
		return err
	})
	if err != nil {
		return explainBus(doing, s.unit, err)
	}
	if state := property[string](p, "LoadState"); state != "loaded" {
		return fmt.Errorf("cannot %s: %w: systemd reports LoadState %q: install the unit, or unmask it: \"systemctl "+
			"status %s\"",
			doing, ErrNotInstalled, state, s.unit)
	}
	if !p.readsEnvironment(s.environmentFile) {
		return fmt.Errorf("cannot %s: %w: %s", doing, ErrEnvironmentUnused, s.dropIn())
	}
	if s.orders != nil {
		return s.orders.SetEnvironment(ctx, vars)
	}
	if err := writeEnvironment(s.environmentFile, vars); err != nil {
		return explainFile(doing, err)
	}
	return nil
}

// Environment reads the environment file. A missing file has no variables.
func (s *Service) Environment(context.Context) (map[string]string, error) {
	doing := "read the environment of " + s.unit
	if s.environmentFile == "" {
		return nil, fmt.Errorf("cannot %s: %w", doing, errNoEnvironmentFile)
	}
	vars, err := readEnvironment(s.environmentFile)
	if err != nil {
		return nil, explainRead(doing, err)
	}
	return vars, nil
}

// FormatEnvironment returns vars as SetEnvironment writes them.
func FormatEnvironment(vars map[string]string) ([]byte, error) { return formatEnvironment(vars) }

// ParseEnvironment parses text as systemd would parse an environment file.
func ParseEnvironment(text string) (map[string]string, error) { return parseEnvironment(text) }

// dropIn returns the drop-in that makes the unit read the file. "-" lets the unit start without the file, and "%" is
// doubled because systemd expands specifiers in the path.
func (s *Service) dropIn() string {
	return fmt.Sprintf(`the unit does not read %[2]s: add this drop-in, then run "systemctl daemon-reload":

# /etc/systemd/system/%[1]s.d/quorumd.conf
[Service]
EnvironmentFile=-%[3]s
`, s.unit, s.environmentFile, strings.ReplaceAll(s.environmentFile, "%", "%%"))
}

// readsEnvironment reports whether path is one of the unit's environment files. systemd lists them as pairs of a path,
// possibly with wildcards, and whether it may be missing.
func (p properties) readsEnvironment(path string) bool {
	for _, pair := range property[[][]any](p, "EnvironmentFiles") {
		if len(pair) == 0 {
			continue
		}
		pattern, _ := pair[0].(string)
		if matched, err := filepath.Match(pattern, filepath.Clean(path)); err == nil && matched {
			return true
		}
	}
	return false
}
