// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Work is what a host is taken down for.
type Work string

// The kinds of work.
const (
	WorkMaintenance Work = "maintenance" // anything an operator does there, until the operator ends it
	WorkRestart     Work = "restart"     // of the etcd unit
	WorkReboot      Work = "reboot"      // of the machine
	WorkCommand     Work = "command"     // an operator's program on the host, run while etcd is down
)

// work declares a kind of work. To add one, declare it here, and what is done for it in takeDown and safeToTouch.
type work struct {
	kind Work
	// byWord: only an operator ends it, and may work on the machine until then. The start guard keeps etcd stopped at a
	// boot.
	operatorEnds bool
	// rebootEnds: it is over once the machine has rebooted.
	rebootEnds bool
	// outlastsReboot: the machine may also go down while it is safe to touch.
	outlastsReboot bool
	// alone: its agent does all of it. It is over once its operation is gone and etcd is started, so it does not begin
	// on a host whose etcd an operator has stopped and may be working on.
	automatic bool
	// program: it runs the program named in the request.
	program bool
	// needsMember: there is nothing to do on a host without a member.
	needsMember bool
	// rolls: a rollout may request it.
	rolls bool
}

func workKinds() [4]work {
	return [...]work{
		{kind: WorkMaintenance, operatorEnds: true, outlastsReboot: true},
		{kind: WorkRestart, automatic: true, needsMember: true, rolls: true},
		{kind: WorkReboot, rebootEnds: true, outlastsReboot: true, rolls: true},
		{kind: WorkCommand, automatic: true, program: true, rolls: true},
	}
}

// info returns the declaration; the zero value for unknown work.
func (w Work) info() work {
	for _, info := range workKinds() {
		if info.kind == w {
			return info
		}
	}
	return work{kind: w}
}

// Works returns all kinds of work.
func Works() []Work {
	all := workKinds()
	out := make([]Work, len(all))
	for i, info := range all {
		out[i] = info.kind
	}
	return out
}

// RunsProgram reports whether the work is the program named in the request.
func (w Work) RunsProgram() bool { return w.info().program }

// NeedsMember reports whether there is nothing to do for it on a host without a member.
func (w Work) NeedsMember() bool { return w.info().needsMember }

// over reports whether work is done because the operator ended it or the machine has rebooted.
func (w Work) over(said, rebooted bool) bool { return said || w.info().rebootEnds && rebooted }
