// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// Work is what a host is taken down for.
type Work string

// The kinds of work.
const (
	WorkMaintenance Work = "maintenance" // whatever a person does there, until a person says that it is over
	WorkRestart     Work = "restart"     // of the etcd unit
	WorkReboot      Work = "reboot"      // of the machine
	WorkCommand     Work = "command"     // a program of the operator's that lies on the host, run while etcd is down
)

// work declares a kind of work. Whoever adds one declares it here, and what is done for it in takeDown and touchable.
type work struct {
	kind Work
	// byWord: nobody but a person says that it is over, and may have their hands on the machine until then. Etcd is
	// held back from starting by itself at a boot.
	byWord bool
	// rebootEnds: it is over once the machine has rebooted.
	rebootEnds bool
	// outlastsReboot: the machine may go down, too, when it is safe to touch.
	outlastsReboot bool
	// alone: its agent does all of it. It is over where its operation is gone, and etcd is started; so it is not begun
	// on a host whose etcd somebody has stopped, and may work on.
	alone bool
	// program: it is the program that is named with it.
	program bool
	// needsMember: there is nothing to do on a host that holds no member.
	needsMember bool
	// rolls: a rollout may ask for it.
	rolls bool
}

func workKinds() [4]work {
	return [...]work{
		{kind: WorkMaintenance, byWord: true, outlastsReboot: true},
		{kind: WorkRestart, alone: true, needsMember: true, rolls: true},
		{kind: WorkReboot, rebootEnds: true, outlastsReboot: true, rolls: true},
		{kind: WorkCommand, alone: true, program: true, rolls: true},
	}
}

// info gives the declaration; of work that is not known, one of which nothing is true.
func (w Work) info() work {
	for _, info := range workKinds() {
		if info.kind == w {
			return info
		}
	}
	return work{kind: w}
}

// Works gives all kinds of work.
func Works() []Work {
	all := workKinds()
	out := make([]Work, len(all))
	for i, info := range all {
		out[i] = info.kind
	}
	return out
}

// RunsProgram tells whether the work is the program that is named with it.
func (w Work) RunsProgram() bool { return w.info().program }

// NeedsMember tells whether there is nothing to do for it on a host that holds no member.
func (w Work) NeedsMember() bool { return w.info().needsMember }

// over tells whether work is done, of which a person has said that it is, or for which the machine has rebooted.
func (w Work) over(said, rebooted bool) bool { return said || w.info().rebootEnds && rebooted }
