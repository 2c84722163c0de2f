// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Standing is a request to take a host down, as far as anything is decided by it: what was asked, and how far that is.
// The agent makes it of what lies on the host's disk, the model of its world: both ask it whether the request is over
// before anything is decided, and have it changed by the transitions in request_moves.go alone. Whether the work of an
// operation under way is done, `worked` reads from the operation itself.
type Standing struct {
	By, Reason  string
	Work        Work
	Program     string // of a command
	KeepRunning bool   // only the turn is wanted, etcd goes on
	External    bool   // somebody else reboots the machine
	Hurried     bool   // the machine goes down within seconds, whatever is decided

	Ended   bool // a person has said that it is over, or its operation is about to be ended
	Waived  bool // a person has said so although the hooks had failed that run after it
	Begun   bool // its operation has begun
	Seen    bool // and was seen in etcd: it is in flight until it has ended or was released
	Stopped bool // this agent has stopped etcd for it, and has not started it since
	// Ran is what is noted of the program of a command: running, when it was started; done or failed; or nothing.
	Ran HookState
	// OtherBoot tells that its operation began in another boot of the machine than this one; or, where none has begun,
	// that it was asked in another one.
	OtherBoot bool
}

// Rebooted tells whether the machine has been rebooted since its operation began.
func (s Standing) Rebooted() bool { return s.Begun && s.OtherBoot }

// TooLate tells whether the machine was rebooted by somebody else before its turn had come: nobody will reboot it
// again.
func (s Standing) TooLate() bool { return s.External && !s.Begun && s.OtherBoot }

// Done tells whether its work is: nothing more is to be taken down for it.
func (s Standing) Done() bool { return s.Work.over(s.Ended, s.Rebooted()) }

// Untouched tells whether nothing of it has been done: a person's word that it is over withdraws it at once.
func (s Standing) Untouched() bool { return !s.Begun && !s.Stopped }

// OutlastsReboot tells whether the machine may go down, too, when it is safe to touch for this.
func (s Standing) OutlastsReboot() bool { return !s.Ended && s.Work.info().outlastsReboot }

// Gone tells what has become of its operation, which was seen, where etcd shows none of this host's any more: a person
// has released it, or it is of another cluster; or else somebody has deleted its record, and it stands by this host's
// disk.
func (s Standing) Gone(shown, elsewhere, freed bool) (released, noted bool) {
	gone := s.Seen && !shown
	return gone && (elsewhere || freed), gone && !elsewhere && !freed
}

// Asked gives it as the policy sees it; what more was observed of it is to be filled in.
func (s Standing) Asked() Asked {
	return Asked{
		Work: s.Work, By: s.By, Reason: s.Reason, Program: s.Program,
		KeepRunning: s.KeepRunning, External: s.External, Hurried: s.Hurried,
		Over: s.Done() || s.TooLate(), Ended: s.Ended, TooLate: s.TooLate(), Waived: s.Waived,
		Unbegun: !s.Begun, Seen: s.Seen, Rebooted: s.Rebooted(), Stopped: s.Stopped,
	}
}
