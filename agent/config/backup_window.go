// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/autoreboot"
)

// Open reports whether snapshots may be saved at that time.
func (b Backup) Open(at time.Time) bool {
	return len(b.Windows) == 0 || slices.ContainsFunc(b.Windows, func(text string) bool {
		w, err := autoreboot.ParseWindow(text)
		return err == nil && w.Contains(at) // the configuration is valid
	})
}
