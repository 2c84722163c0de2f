// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// This file records the progress of a request while its operation runs, as transitions of policy.Request. By the time a
// transition is recorded, an operator may have cancelled the request and made a new one. So a method that takes a
// request changes only that request. EtcdStopped and ProgramStarted also report whether the request is still in force.

// Beginning is when and where a request's operation begins.
type Beginning struct {
	BootID  string
	At      time.Time
	Clock   time.Duration // since boot
	Cluster uint64
}

// BeginOperation records that the operation begins and returns the current request, or nil.
func (f *State) BeginOperation(b Beginning) (*Request, error) {
	var asked *Request
	b.At = b.At.UTC().Round(0)
	err := f.markRequest(func(k *Request) {
		k.becomes(k.At("").Begins())
		k.begun(b)
		value := *k
		asked = &value
	})
	return asked, err
}

// OperationRecorded records that the operation is in etcd. If its record disappears later, the operation was released
// or the record was deleted.
func (f *State) OperationRecorded() error { return f.moves(policy.Request.Recorded) }

// OperationSeen records that the operation of the request was observed in etcd, if this exact request is still current.
// If the beginning is missing on disk, b is recorded: OperationGivenUp has removed it, but the operation could not be
// ended in etcd.
func (f *State) OperationSeen(of *Request, b Beginning) error {
	return f.markRequest(func(k *Request) {
		if *k != *of {
			return
		}
		k.becomes(k.At("").Recorded())
		if k.Began.IsZero() {
			k.begun(b)
		}
	})
}

// StandingEnds ends the request with a code, but only if the request is still current and unchanged.
func (f *State) StandingEnds(of *Request, code policy.ReasonCode, text string, at time.Time) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil || *k != *of {
			return k, nil
		}
		return nil, k.End(code, text, at)
	})
}

// TakeTurn records a request that the agent makes, for a rollout or by itself, unless the host already has one.
func (f *State) TakeTurn(next *Request) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			return k, nil
		}
		return next, nil
	})
}

// Withdraw deletes the given request, if it is still current and unchanged. It leaves no record of an end.
func (f *State) Withdraw(of *Request) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil || *k != *of {
			return k, nil
		}
		return nil, nil
	})
}

// EtcdStopped records that etcd is about to be stopped for the given request. It reports whether the request is still
// in force.
func (f *State) EtcdStopped(of *Request) (inForce bool, err error) {
	err = f.markRequest(func(k *Request) {
		inForce = k.begins(of, policy.Request.StopsEtcd)
	})
	return inForce, err
}

// CalledOff records why the work of the given request is called off, if the request is still current and unchanged.
func (f *State) CalledOff(of *Request, why string) error {
	return f.markRequest(func(k *Request) {
		if *k == *of {
			k.becomes(k.At("").CalledOff(why))
		}
	})
}

// EtcdStarted records that etcd was started again.
func (f *State) EtcdStarted() error { return f.moves(policy.Request.EtcdStarted) }

// ProgramStarted records the start of the given request's program, with the boot ID and the time since boot, before the
// program is started. An already recorded start keeps its time. ProgramStarted returns the run, and reports whether the
// request is still in force.
func (f *State) ProgramStarted(of *Request, bootID string, at time.Duration) (run hooks.Run, inForce bool, err error) {
	err = f.markRequest(func(k *Request) {
		before := k.Ran
		if inForce = k.begins(of, policy.Request.StartsProgram); !inForce {
			return
		}
		if k.Ran != before {
			k.RanIn, k.RanAt = bootID, at
		}
		run = k.CommandRun()
	})
	return run, inForce, err
}

// ProgramEnded records the result of the given request's program, even if the request is no longer in force.
func (f *State) ProgramEnded(of *Request, how policy.HookState, text string) error {
	return f.markRequest(func(k *Request) {
		if k.Since.Equal(of.Since) {
			k.becomes(k.At("").ProgramEnded(how))
			k.RanText = text
		}
	})
}

// OldDatabaseDeleted records that the database from before a defragmentation was deleted.
func (f *State) OldDatabaseDeleted() error { return f.moves(policy.Request.DeletesOld) }

// OperationEnds records that the operation and its request end, before they end, so that a crash in between does not
// repeat them. If the request belongs to the given rollout, OperationEnds also records how many times the rollout has
// been resumed, because an operator may have resumed it after the request was made.
func (f *State) OperationEnds(in *record.Rollout) error {
	return f.markRequest(func(k *Request) {
		if in != nil && in.ID == k.Rollout {
			k.RolloutResumed = max(k.RolloutResumed, in.Resumed)
		}
		k.becomes(k.At("").OperationEnds())
	})
}

// OperationGivenUp records that the operation ends with its request unfinished. A later operation will serve the
// request. The caller calls OperationGivenUp before it ends the operation in etcd, so that a crash in between does not
// look like a release by an operator.
func (f *State) OperationGivenUp() error { return f.moves(policy.Request.GivenUp) }

// begins applies a transition if the given request is still the current one, and reports whether that request is still
// in force.
func (k *Request) begins(of *Request, transition func(policy.Request) (policy.Request, bool)) bool {
	if !k.Since.Equal(of.Since) {
		return false
	}
	next, inForce := transition(k.At(""))
	k.becomes(next)
	return inForce
}
