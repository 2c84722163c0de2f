// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Standing is what decides whether a request to take a host down is over. The agent makes it of what lies on the host's
// disk, the model of its world: both ask it, and nobody else says when a request is over.
type Standing struct {
	Work     Work
	External bool // somebody else reboots the machine
	Said     bool // a person has said that it is over, or its operation is about to be ended
	Begun    bool // its operation has begun
	Stopped  bool // this agent has stopped etcd for it, and has not started it since
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
func (s Standing) Done() bool { return s.Work.over(s.Said, s.Rebooted()) }

// Untouched tells whether nothing of it has been done: a person's word that it is over withdraws it at once.
func (s Standing) Untouched() bool { return !s.Begun && !s.Stopped }

// OutlastsReboot tells whether the machine may go down, too, when it is safe to touch for this.
func (s Standing) OutlastsReboot() bool { return !s.Said && s.Work.info().outlastsReboot }

// Asked gives it as the policy sees it; the rest of what was asked is to be filled in.
func (s Standing) Asked() Asked {
	return Asked{
		Work: s.Work, External: s.External, Over: s.Done() || s.TooLate(), Ended: s.Said, TooLate: s.TooLate(),
		Unbegun: !s.Begun, Rebooted: s.Rebooted(), Stopped: s.Stopped,
	}
}
