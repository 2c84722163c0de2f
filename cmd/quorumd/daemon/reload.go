// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/systemd"
)

// errReload is why an agent ends that restarts with another configuration.
var errReload = errors.New("the configuration has changed")

// Serve is Run for a program that can restart itself: it does so if again is true. At every signal it reads and checks
// the configuration. A wrong one is rejected, and the agent continues with its own; a changed one ends the agent
// cleanly.
//
// All keys take effect in this way, and all state of the old process ends with it. It is the same as a restart, except
// that the file is checked first.
func Serve(ctx context.Context, opt Options, signals <-chan os.Signal) (again bool, err error) {
	before, err := loadConfig(opt.Config, slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if differs(before, opt) {
				end(errReload)
			}
		}
	}()
	err = Run(ctx, opt)
	return err == nil && errors.Is(context.Cause(ctx), errReload), err
}

// differs reports whether there is a valid configuration that differs from the current one.
func differs(before config.Config, opt Options) bool {
	next, err := loadConfig(opt.Config, opt.Logger)
	if wrong, is := errors.AsType[config.Errors](err); is {
		for _, problem := range wrong {
			opt.Logger.Error("new configuration rejected; keeping the current one", "error",
				problem)
		}
		return false
	}
	if err != nil {
		opt.Logger.Error("new configuration rejected; keeping the current one", "error", err)
		return false
	}
	keys := config.Changed(before, next)
	if len(keys) == 0 {
		opt.Logger.Info("configuration reloaded: no changes")
		return false
	}
	opt.Logger.Info("configuration changed; restarting", "keys", keys)
	return true
}

// ending tells systemd how the agent ends: for good, or to be back at once.
func ending(ctx context.Context, notifier *systemd.Notifier) error {
	if errors.Is(context.Cause(ctx), errReload) {
		return notifier.Reloading()
	}
	return notifier.Stopping()
}
