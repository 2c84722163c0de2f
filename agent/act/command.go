// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumd/quorumd/agent/round"
)

// runCommand starts an operator's program or the offline defragmentation. It records the start on disk first.
func (a *Actor) runCommand(ctx context.Context, t *task) error {
	r := t.on
	// if the program's state cannot be read now, the agent could not read its outcome either
	if _, err := a.opt.Hooks.State(ctx, r.Request.CommandRun()); err != nil {
		return err
	}
	run, current, err := a.opt.Files.ProgramStarted(r.Request, a.opt.BootID, a.opt.Now())
	// The program may replace etcd's binary, which must not run before its version is known. No round reads the version
	// until the program has ended.
	a.opt.ForgetBinary()
	switch {
	case err != nil:
		return err
	case !current:
		return errors.New("cannot begin: the request was cancelled")
	case !a.lock.MayAct(): // the disk may have hung
		return errors.New("cannot begin: this agent no longer holds the lock")
	}
	return a.opt.Hooks.Start(ctx, run)
}

func (a *Actor) commandLaunched(t *task) { a.launched(t.on.Request.CommandRun()) }

// noteCommand records the outcome of a command's program or of an offline defragmentation. If the disk rejects the
// write, etcd is started anyway.
func (a *Actor) noteCommand(r *round.Round) {
	if r.Request == nil || !r.Request.Work.RunsJob() {
		return
	}
	now := r.View.Asked.Command
	if !now.Ended() {
		return
	}
	if err := a.opt.Files.ProgramEnded(r.Request, now.State, now.Text); err != nil {
		a.log.Error("cannot save the result of the command", "error", err)
	}
}

// deleteOldDatabase deletes the database from before a defragmentation.
func (a *Actor) deleteOldDatabase(ctx context.Context, _ *task) error {
	if a.opt.DeleteOldDatabase == nil {
		return errors.New("this agent cannot access etcd's files")
	}
	if err := a.opt.DeleteOldDatabase(ctx); err != nil {
		return fmt.Errorf("cannot delete the old database after the defragmentation: %w", err)
	}
	return a.opt.Files.OldDatabaseDeleted()
}
