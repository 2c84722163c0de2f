// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
)

// What is noted of a request while it comes to its end, each by its own name. It was decided on a request that may have
// been withdrawn since, and another asked for instead: what is for one request only takes that one, and steps are told
// whether it stands.

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
	err := f.MarkRequest(func(k *Request) {
		k.BootID, k.Began, k.Clock, k.Cluster = b.BootID, b.At.UTC().Round(0), b.Clock, ID(b.Cluster)
		value := *k
		asked = &value
	})
	return asked, err
}

// OperationRecorded notes that the operation is in etcd: one that is gone later was released.
func (f *State) OperationRecorded() error {
	return f.MarkRequest(func(k *Request) { k.Seen = true })
}

// OperationSeen notes that the operation of that request was seen in etcd, if exactly that is asked still. It says how
// that began where the disk does not: its early end was noted, and has failed.
func (f *State) OperationSeen(of *Request, b Beginning) error {
	return f.MarkRequest(func(k *Request) {
		if *k != *of {
			return
		}
		k.Seen = true
		if k.Began.IsZero() {
			k.BootID, k.Began, k.Clock, k.Cluster = b.BootID, b.At, b.Clock, ID(b.Cluster)
		}
	})
}

// StandingEnds forgets that request, if exactly that is asked still: it has ended in that way.
func (f *State) StandingEnds(of *Request, code policy.ReasonCode, text string, at time.Time) error {
	return f.ChangeRequest(func(k *Request) (*Request, *End) {
		if k == nil || *k != *of {
			return k, nil
		}
		return nil, k.Ended(code, text, at)
	})
}

// TakeTurn asks what a rollout asks of this host, if nothing is asked.
func (f *State) TakeTurn(next *Request) error {
	return f.ChangeRequest(func(k *Request) (*Request, *End) {
		if k != nil {
			return k, nil
		}
		return next, nil
	})
}

// EtcdStopped notes, before it is done, that etcd is stopped for that request, if it stands.
func (f *State) EtcdStopped(of *Request) (stands bool, err error) {
	err = f.MarkRequest(func(k *Request) {
		if stands = k.stands(of); stands {
			k.Stopped = true
		}
	})
	return stands, err
}

// EtcdStarted notes that etcd was started again.
func (f *State) EtcdStarted() error {
	return f.MarkRequest(func(k *Request) { k.Stopped = false })
}

// ProgramStarted notes, before it is done, that the program of that request is started, if the request stands: in which
// boot, and when since that. One that was noted before keeps its time. It gives the run.
func (f *State) ProgramStarted(of *Request, bootID string, at time.Duration) (run hooks.Run, stands bool, err error) {
	err = f.MarkRequest(func(k *Request) {
		if stands = k.stands(of); !stands {
			return
		}
		if k.Ran == "" {
			k.Ran, k.RanIn, k.RanAt = policy.HooksRunning, bootID, at
		}
		run = k.CommandRun()
	})
	return run, stands, err
}

// ProgramEnded notes how the program of that request went, also of one that is over.
func (f *State) ProgramEnded(of *Request, how policy.HookState, text string) error {
	return f.MarkRequest(func(k *Request) {
		if k.Since.Equal(of.Since) {
			k.Ran, k.RanText = how, text
		}
	})
}

// OperationEnds notes, before it is done, that the operation ends, and with it what is asked: a crash in between must
// not do it all again.
func (f *State) OperationEnds() error {
	return f.MarkRequest(func(k *Request) { k.Seen, k.Over = false, true })
}

// OperationGivenUp notes, before it is done, that the operation ends, and that what is asked waits for another: a crash
// in between must not look like a release.
func (f *State) OperationGivenUp() error {
	return f.MarkRequest(func(k *Request) {
		k.Seen, k.BootID, k.Began, k.Clock, k.Cluster = false, "", time.Time{}, 0, 0
	})
}

// stands tells whether this is still that request, and not over.
func (k *Request) stands(of *Request) bool { return k.Since.Equal(of.Since) && !k.Over }
