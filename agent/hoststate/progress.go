// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package hoststate

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// What is noted of a request from the beginning of its operation to its end: transitions of policy.Standing. It was
// decided on a request that may have been withdrawn since, and another asked for instead: what is for one request only
// takes that one, and steps are told whether it stands.

// Beginning is when and where the operation of a request begins.
type Beginning struct {
	BootID  string
	At      time.Time
	Clock   time.Duration // since boot
	Cluster uint64
}

// BeginOperation notes that the operation begins. It gives what is asked then; nil when nothing is.
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

// OperationRecorded notes that the operation is in etcd: one that is gone later was released.
func (f *State) OperationRecorded() error { return f.moves(policy.Standing.Recorded) }

// OperationSeen notes that the operation of that request was seen in etcd, if exactly that is asked still. It says how
// that began where the disk does not: its early end was noted, and has failed.
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

// StandingEnds forgets that request, if exactly that is asked still: it has ended in that way.
func (f *State) StandingEnds(of *Request, code policy.ReasonCode, text string, at time.Time) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k == nil || *k != *of {
			return k, nil
		}
		return nil, k.End(code, text, at)
	})
}

// TakeTurn asks what a rollout asks of this host, if nothing is asked.
func (f *State) TakeTurn(next *Request) error {
	return f.changeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			return k, nil
		}
		return next, nil
	})
}

// EtcdStopped notes, before it is done, that etcd is stopped for that request, if it stands.
func (f *State) EtcdStopped(of *Request) (stands bool, err error) {
	err = f.markRequest(func(k *Request) {
		stands = k.begins(of, policy.Standing.StopsEtcd)
	})
	return stands, err
}

// EtcdStarted notes that etcd was started again.
func (f *State) EtcdStarted() error { return f.moves(policy.Standing.EtcdStarted) }

// ProgramStarted notes, before it is done, that the program of that request is started, if the request stands: in which
// boot, and when since that. One that was noted before keeps its time. It gives the run.
func (f *State) ProgramStarted(of *Request, bootID string, at time.Duration) (run hooks.Run, stands bool, err error) {
	err = f.markRequest(func(k *Request) {
		before := k.Ran
		if stands = k.begins(of, policy.Standing.StartsProgram); !stands {
			return
		}
		if k.Ran != before {
			k.RanIn, k.RanAt = bootID, at
		}
		run = k.CommandRun()
	})
	return run, stands, err
}

// ProgramEnded notes how the program of that request went, also of one that is over.
func (f *State) ProgramEnded(of *Request, how policy.HookState, text string) error {
	return f.markRequest(func(k *Request) {
		if k.Since.Equal(of.Since) {
			k.becomes(k.Standing("").ProgramEnded(how))
			k.RanText = text
		}
	})
}

// OperationEnds notes, before it is done, that the operation ends, and with it what is asked: a crash in between must
// not do it all again. Of a turn in that rollout, if any, it says how often that had been let go on by its end: it may
// have been, since the turn was asked for.
func (f *State) OperationEnds(in *record.Rollout) error {
	return f.markRequest(func(k *Request) {
		if in != nil && in.ID == k.Rollout {
			k.RolloutResumed = max(k.RolloutResumed, in.Resumed)
		}
		k.becomes(k.Standing("").OperationEnds())
	})
}

// OperationGivenUp notes, before it is done, that the operation ends, and that what is asked waits for another: a crash
// in between must not look like a release.
func (f *State) OperationGivenUp() error { return f.moves(policy.Standing.GivenUp) }

// begins notes what is about to be done for that request, if this is still that one and stands.
func (k *Request) begins(of *Request, transition func(policy.Standing) (policy.Standing, bool)) bool {
	if !k.Since.Equal(of.Since) {
		return false
	}
	next, stands := transition(k.Standing(""))
	k.becomes(next)
	return stands
}
