// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd"
)

// notifySystemd returns a function for the end of a round. It notifies systemd that the loop is alive and, after the
// first round, that the agent is ready.
func notifySystemd(notifier *systemd.Notifier, log *slog.Logger) func(policy.Decision, health.Assessment) {
	var once sync.Once
	return func(d policy.Decision, v health.Assessment) {
		text := fmt.Sprintf("%s, health %s", d.Role, v.State)
		if len(d.Reasons) > 0 {
			text += ": " + string(d.Reasons[0].Code) + ", " + d.Reasons[0].Text
		}
		err := errors.Join(notifier.Status(text), notifier.Watchdog())
		once.Do(func() { err = errors.Join(err, notifier.Ready()) })
		if err != nil {
			log.Debug("cannot notify systemd", "error", err)
		}
	}
}
