// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Standing is the part of a request to take a host down that decisions depend on: what was requested, and its progress.
// The agent builds it from the host's disk, the model from its world: both let it decide whether the request is over,
// and change it only by the transitions in request_moves.go. Whether the work of an operation in flight is done,
// workDone reads from the operation itself.
type Request struct {
	Work        Work   `json:"work"`
	Program     string `json:"program,omitempty"` // of a command
	Reason      string `json:"reason"`
	By          string `json:"by"`
	KeepRunning bool   `json:"keepRunning,omitempty"` // only the permission is wanted, etcd keeps running
	External    bool   `json:"external,omitempty"`    // something else reboots the machine
	Hurried     bool   `json:"hurried,omitempty"`     // the machine goes down within seconds in any case

	Ended   bool `json:"over,omitempty"`    // an operator has ended it, or its operation is about to end
	Waived  bool `json:"waived,omitempty"`  // an operator ended it although the hooks that run after it had failed
	Seen    bool `json:"seen,omitempty"`    // its operation was seen in etcd, and is in flight
	Stopped bool `json:"stopped,omitempty"` // this agent has stopped etcd for it, and has not started it since
	// Ran is what is recorded about the program of a command: running, once it was started; done or failed; or nothing.
	Ran HookState `json:"ran,omitempty"`

	// Begun and OtherBoot are derived from when its operation began, which is not the policy's concern: Begun means
	// that it has, OtherBoot that it was in an earlier boot of the machine or, if none has begun, that it was requested
	// in one.
	Begun     bool `json:"-"`
	OtherBoot bool `json:"-"`
}

// Rebooted reports whether the machine has been rebooted since its operation began.
func (s Request) Rebooted() bool { return s.Begun && s.OtherBoot }

// TooLate reports whether the machine was rebooted externally before its operation began: it will not be rebooted
// again.
func (s Request) TooLate() bool { return s.External && !s.Begun && s.OtherBoot }

// Done reports whether its work is done: nothing more is taken down for it.
func (s Request) Done() bool { return s.Work.over(s.Ended, s.Rebooted()) }

// Untouched reports whether nothing of it has been done: an operator's end cancels it at once.
func (s Request) Untouched() bool { return !s.Begun && !s.Stopped }

// OutlastsReboot reports whether the machine may also go down while it is safe to touch for this.
func (s Request) OutlastsReboot() bool { return !s.Ended && s.Work.info().outlastsReboot }

// Gone returns what happened to its operation, which was seen, if etcd has none of this host's any more: an operator
// released it, or it is of another cluster; otherwise its record was deleted, and it is still in flight by this host's
// disk.
func (s Request) Gone(shown, elsewhere, freed bool) (released, noted bool) {
	gone := s.Seen && !shown
	return gone && (elsewhere || freed), gone && !elsewhere && !freed
}

// Asked returns it as the policy uses it; the caller fills in further observations.
func (s Request) Asked() Asked {
	return Asked{
		Work: s.Work, By: s.By, Reason: s.Reason, Program: s.Program,
		KeepRunning: s.KeepRunning, External: s.External, Hurried: s.Hurried,
		Done: s.Done() || s.TooLate(), Ended: s.Ended, TooLate: s.TooLate(), Waived: s.Waived,
		NotBegun: !s.Begun, Seen: s.Seen, Rebooted: s.Rebooted(), Stopped: s.Stopped,
	}
}
