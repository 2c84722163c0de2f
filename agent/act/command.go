// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"

	"github.com/quorumd/quorumd/agent/round"
)

// runCommand starts the program of a command. That is noted first.
func (a *Actor) runCommand(ctx context.Context, t *task) error {
	r := t.on
	if _, err := a.opt.Hooks.State(ctx, r.Request.CommandRun()); err != nil { // nobody would see how it goes
		return err
	}
	run, stands, err := a.opt.Files.ProgramStarted(r.Request, a.opt.BootID, a.opt.Now())
	// it may exchange etcd, which must not be started unseen; from here on nobody looks until it has ended
	a.opt.ForgetBinary()
	switch {
	case err != nil:
		return err
	case !stands:
		return errors.New("cannot run the command: the request was cancelled")
	case !a.lock.MayAct(): // the disk may have hung
		return errors.New("cannot run the command: this agent no longer holds the lock")
	}
	return a.opt.Hooks.Start(ctx, run)
}

func (a *Actor) commandLaunched(t *task) { a.launched(t.on.Request.CommandRun()) }

// noteCommand notes how the program of a command went. A disk that takes no note does not keep etcd down.
func (a *Actor) noteCommand(r *round.Round) {
	if r.Request == nil || !r.Request.Work.RunsProgram() {
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
