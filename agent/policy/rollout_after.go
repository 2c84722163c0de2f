// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// RolloutProgress is a rollout as observed by the host that has just had its turn in it.
type RolloutProgress struct {
	Host    string // the name of this host
	Ongoing    bool   // it runs or is paused, and was not stopped or aborted
	Waiting int    // how many other hosts have not had their turn
	// Wants is the etcd version to reach, empty for any, and Runs what this host's member reports, empty if unknown.
	// Both are texts: two unparsable versions are not equal.
	Wants, Runs string
	Member      bool // this host is a member
}

// RolloutEnd is what happens to a rollout. The zero value leaves it as it is: the host's request stays.
type RolloutEnd struct {
	HostDone bool   // this host has had its turn
	Done     bool   // it was the last one
	Stopped  string // why the rollout stops before the next host; empty if it does not
}

// RolloutAfter returns what happens to a rollout when the operation of one of its hosts ends with that step. A host
// that did not come back as required stops it.
func RolloutAfter(t RolloutProgress, step Step) RolloutEnd {
	switch {
	case step.Outcome == Cancelled:
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
	return RolloutEnd{HostDone: true, Done: t.Ongoing && t.Waiting == 0}
}
