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

// errReload is the reason why an agent ends to restart with a changed configuration.
var errReload = errors.New("the configuration has changed")

// Serve is like Run for a program that restarts itself if again is true. At every signal, it reads and checks the
// configuration. It rejects an invalid one, and the agent continues. If the configuration has changed, it ends the
// agent cleanly.
//
// A reload is a restart, except that the file is checked first: all keys take effect, and no state of the old process
// remains.
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

// differs reports whether the configuration file is valid and differs from the current configuration.
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

// notifyEnd notifies systemd whether the agent stops or reloads.
func notifyEnd(ctx context.Context, notifier *systemd.Notifier) error {
	if errors.Is(context.Cause(ctx), errReload) {
		return notifier.Reloading()
	}
	return notifier.Stopping()
}
