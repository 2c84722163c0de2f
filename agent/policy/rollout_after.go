// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// RolloutProgress is a rollout as the host sees it that has just had its turn in it.
type RolloutProgress struct {
	Host    string // the name of this host
	Goes    bool   // it runs, or is paused: nobody has stopped or aborted it
	Waiting int    // hosts that wait for their turn, this one not among them
	// Wants is the version that etcd shall report afterwards, empty for any, and Runs what this host's member reports,
	// empty when that is not known. Both are texts: what cannot be read as a version is not like every other such text.
	Wants, Runs string
	Member      bool // this host is a member
}

// RolloutEnd is what becomes of a rollout. The zero value leaves it as it is: the host is asked for still.
type RolloutEnd struct {
	HostDone bool   // this host has had its turn
	Done     bool   // it was the last one
	Stopped  string // why the rollout stops before the next host; empty when it does not
}

// RolloutAfter gives what becomes of a rollout when the operation of one of its hosts ends with that step. A host that
// did not come back as it should stops it.
func RolloutAfter(t RolloutProgress, step Step) RolloutEnd {
	switch {
	case step.Outcome == Withdrawn:
		return RolloutEnd{Stopped: t.Host + "'s request was cancelled"}
	case step.Outcome == HookFailed || step.Outcome == CommandFailed:
		return RolloutEnd{Stopped: "on " + t.Host + ": " + step.Why}
	case step.Outcome == MemberLost || step.Outcome == HealthBad:
		return RolloutEnd{Stopped: "on " + t.Host + ": " + step.Why}
	case step.Outcome != Cycled:
		return RolloutEnd{}
	case t.Wants != "" && t.Member && t.Runs != t.Wants:
		runs := t.Runs
		if runs == "" {
			runs = "unknown"
		}
		return RolloutEnd{Stopped: fmt.Sprintf("%s came back with etcd %s, not %s", t.Host, runs, t.Wants)}
	}
	return RolloutEnd{HostDone: true, Done: t.Goes && t.Waiting == 0}
}
