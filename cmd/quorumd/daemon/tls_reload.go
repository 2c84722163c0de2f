// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
)

// reloadTLS periodically reads the TLS files and the password again, in parallel with the loop.
func reloadTLS(ctx context.Context, client *cluster.Client, every time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var text string
		if err := client.Reload(); err != nil {
			text = err.Error()
		}
		if text != last && text != "" {
			log.Error("cannot reload TLS files or the password; keeping the old ones", "error", text)
		}
		last = text
	}
}
