// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// The progress of a request while its operation runs, as transitions of policy.Standing. By the time a transition is
// recorded, the request it was decided on may have been cancelled and replaced by another. So a transition for one
// request applies to that request only, and its caller learns whether the request is still in force.

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
		k.becomes(k.Standing("").Begins())
		k.begun(b)
		value := *k
		asked = &value
	})
	return asked, err
}

// OperationRecorded records that the operation is in etcd. If it disappears later, it was released.
func (f *State) OperationRecorded() error { return f.moves(policy.Standing.Recorded) }

// OperationSeen records that the operation of that request was observed in etcd, if exactly that request is still
// current. b supplies the beginning if the disk has none: recording the operation's early end had failed.
func (f *State) OperationSeen(of *Request, b Beginning) error {
	return f.markRequest(func(k *Request) {
		if *k != *of {
			return
		}
		k.becomes(k.Standing("").Recorded())
		if k.Began.IsZero() {
			k.begun(b)
		}
	})
}

// StandingEnds ends that request with a code, if exactly that request is still current.
func (f *State) StandingEnds(of *Request, code policy.ReasonCode, text string, at time.Time) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil || *k != *of {
			return k, nil
		}
		return nil, k.End(code, text, at)
	})
}

// TakeTurn makes a rollout's request this host's request, if there is none.
func (f *State) TakeTurn(next *Request) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			return k, nil
		}
		return next, nil
	})
}

// EtcdStopped records, in advance, that etcd is stopped for that request. It reports whether the request is still in
// force.
func (f *State) EtcdStopped(of *Request) (inForce bool, err error) {
	err = f.markRequest(func(k *Request) {
		inForce = k.begins(of, policy.Standing.StopsEtcd)
	})
	return inForce, err
}

// EtcdStarted records that etcd was started again.
func (f *State) EtcdStarted() error { return f.moves(policy.Standing.EtcdStarted) }

// ProgramStarted records, in advance, that the program of that request is started, with the boot and the time since
// boot. A start that was recorded before keeps its time. It returns the run, and whether the request is still in force.
func (f *State) ProgramStarted(of *Request, bootID string, at time.Duration) (run hooks.Run, inForce bool, err error) {
	err = f.markRequest(func(k *Request) {
		before := k.Ran
		if inForce = k.begins(of, policy.Standing.StartsProgram); !inForce {
			return
		}
		if k.Ran != before {
			k.RanIn, k.RanAt = bootID, at
		}
		run = k.CommandRun()
	})
	return run, inForce, err
}

// ProgramEnded records the result of that request's program, even if the request has ended.
func (f *State) ProgramEnded(of *Request, how policy.HookState, text string) error {
	return f.markRequest(func(k *Request) {
		if k.Since.Equal(of.Since) {
			k.becomes(k.Standing("").ProgramEnded(how))
			k.RanText = text
		}
	})
}

// OperationEnds records, in advance, that the operation and its request end, so that a crash in between does not repeat
// them. For a host's part in that rollout it also records how often the rollout had been resumed, since that may have
// happened after the request.
func (f *State) OperationEnds(in *record.Rollout) error {
	return f.markRequest(func(k *Request) {
		if in != nil && in.ID == k.Rollout {
			k.RolloutResumed = max(k.RolloutResumed, in.Resumed)
		}
		k.becomes(k.Standing("").OperationEnds())
	})
}

// OperationGivenUp records, in advance, that the operation ends and that its request waits for another. A crash in
// between must not look like a release.
func (f *State) OperationGivenUp() error { return f.moves(policy.Standing.GivenUp) }

// begins applies a transition if k is the same request, and reports whether that is still in force.
func (k *Request) begins(of *Request, transition func(policy.Standing) (policy.Standing, bool)) bool {
	if !k.Since.Equal(of.Since) {
		return false
	}
	next, inForce := transition(k.Standing(""))
	k.becomes(next)
	return inForce
}
