// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// RequestState is the state of a host's request, for operators and for programs that wait for it.
type RequestState string

// The states of a request, in order.
const (
	RequestWaiting   RequestState = "waiting"   // in the queue
	RequestStopping  RequestState = "stopping"  // transferring leadership and stopping etcd
	RequestSafe      RequestState = "safe"      // the machine is safe to touch
	RequestWorking   RequestState = "working"   // etcd is stopped, and the command runs
	RequestReturning RequestState = "returning" // etcd is started, and catches up
)

// StateOf returns the state of this host's request. While no voter answers, or if the operation's record was deleted,
// this host's disk and etcd unit show whether etcd is down for it.
func StateOf(v View) RequestState {
	a := v.Asked
	if a == nil {
		return RequestWaiting
	}
	own := v.owns(KindCycle)
	stopped := a.Stopped && v.Unit.State != UnitActive && v.Unit.State != UnitDeactivating
	down := own && v.Op.Phase == PhaseDown || (!v.Cluster.Reachable || a.RecordDeleted) && stopped
	switch {
	case commandMayRun(v), a.Command.State == HooksDue && down && v.Cluster.Reachable && !a.Done:
		return RequestWorking
	case a.Done && (own || a.Stopped), own && v.Op.Phase == PhaseBack, down && a.Work.RunsProgram():
		return RequestReturning
	case down:
		return RequestSafe
	case own:
		return RequestStopping
	}
	return RequestWaiting
}
