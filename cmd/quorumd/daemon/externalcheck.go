// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"slices"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/externalcheck"
)

// openChecks returns the runner of the operator's own checks.
func openChecks(c config.Checks, log *slog.Logger) *externalcheck.Runner {
	return externalcheck.Open(externalcheck.Options{
		Child: []string{self, externalcheck.Command},
		Dir:   c.Dir, Named: slices.Concat(c.Joins, c.Leadership, c.Maintenance), Interval: c.Interval,
		Timeout: c.Timeout, Now: sinceBoot, Logger: log,
	})
}
