// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Request is a request to take a host down: its content and its progress, as far as decisions depend on them. The
// agent builds it from the host's disk, and the model from its world. Both use its methods to decide whether the
// request is over, and change it only by the transitions in request_moves.go. workDone decides whether the work of an
// operation in flight is done.
type Request struct {
	Work        Work   `json:"work"`
	Program     string `json:"program,omitempty"` // of a command
	Reason      string `json:"reason"`
	By          string `json:"by"`
	KeepRunning bool   `json:"keepRunning,omitempty"` // the operation is only a reservation: etcd keeps running
	External    bool   `json:"external,omitempty"`    // something other than the agent reboots the machine
	Hurried     bool   `json:"hurried,omitempty"`     // the machine goes down within seconds in any case

	Ended   bool `json:"ended,omitempty"`   // an operator has ended it, or its operation is about to end
	Waived  bool `json:"waived,omitempty"`  // an operator ended it although the hooks after it had failed
	Seen    bool `json:"seen,omitempty"`    // its operation was observed in etcd, and is in flight
	Stopped bool `json:"stopped,omitempty"` // this agent has stopped etcd for it, and has not started it since
	// Ran is the recorded state of a command's program: running, done or failed; empty before it was started.
	Ran HookState `json:"ran,omitempty"`

	// Begun and OtherBoot are derived from when the operation began: Begun reports that it has, OtherBoot that it began
	// in an earlier boot of the machine or, if it has not begun, that it was requested in one.
	Begun     bool `json:"-"`
	OtherBoot bool `json:"-"`
}

// Rebooted reports whether the machine has rebooted since the operation began.
func (s Request) Rebooted() bool { return s.Begun && s.OtherBoot }

// TooLate reports whether the machine was rebooted externally before the operation began: it will not be rebooted
// again.
func (s Request) TooLate() bool { return s.External && !s.Begun && s.OtherBoot }

// Done reports whether the work is done, so that the host need not be taken down.
func (s Request) Done() bool { return s.Work.over(s.Ended, s.Rebooted()) }

// Untouched reports whether nothing has been done for the request: an operator's end cancels it at once.
func (s Request) Untouched() bool { return !s.Begun && !s.Stopped }

// OutlastsReboot reports whether the machine may also go down during the operation.
func (s Request) OutlastsReboot() bool { return !s.Ended && s.Work.info().outlastsReboot }

// Gone returns what happened to the operation if it was observed and is no longer recorded in etcd. It counts as
// released if an operator released it or it was an operation of another cluster. Otherwise its record was deleted, and
// the operation is still in flight according to this host's disk (noted).
func (s Request) Gone(recorded, otherCluster, releasedByOperator bool) (released, noted bool) {
	gone := s.Seen && !recorded
	return gone && (otherCluster || releasedByOperator), gone && !otherCluster && !releasedByOperator
}

// Asked returns the request as part of a View. The caller adds further observations.
func (s Request) Asked() Asked {
	return Asked{
		Work: s.Work, By: s.By, Reason: s.Reason, Program: s.Program,
		KeepRunning: s.KeepRunning, External: s.External, Hurried: s.Hurried,
		Done: s.Done() || s.TooLate(), Ended: s.Ended, TooLate: s.TooLate(), Waived: s.Waived,
		NotBegun: !s.Begun, Seen: s.Seen, Rebooted: s.Rebooted(), Stopped: s.Stopped,
	}
}
