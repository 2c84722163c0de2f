// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Work is the purpose for which a host is taken down.
type Work string

// The kinds of work.
const (
	WorkMaintenance Work = "maintenance" // by an operator, until the operator ends it
	WorkRestart     Work = "restart"     // of the etcd unit
	WorkReboot      Work = "reboot"      // of the machine
	WorkCommand     Work = "command"     // an operator's program on the host, run while etcd is down
)

// work declares a kind of work. To add a kind, declare it here, and handle it in takeDown and touchable.
type work struct {
	kind Work
	// operatorEnds reports that only an operator ends the work, and may work on the machine until then. The start guard
	// keeps etcd stopped at a boot.
	operatorEnds bool
	// rebootEnds reports that the work is over once the machine has rebooted.
	rebootEnds bool
	// outlastsReboot reports that the machine may go down during the work.
	outlastsReboot bool
	// automatic reports that the agent does all of the work. Then the work ends with its operation, and etcd is
	// started. So it does not begin on a host whose etcd an operator has stopped and may be working on.
	automatic bool
	// program reports that the work is running the program named in the request.
	program bool
	// needsMember reports that there is nothing to do on a host without a member.
	needsMember bool
	// rolls reports that a rollout may request the work.
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

// info returns the declaration; for unknown work, one without any property.
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

// over reports whether the work is done because an operator has ended it or the machine has rebooted.
func (w Work) over(ended, rebooted bool) bool { return ended || w.info().rebootEnds && rebooted }
