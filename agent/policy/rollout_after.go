// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// RolloutProgress is the state of a rollout, as observed by a host whose operation ends.
type RolloutProgress struct {
	Host    string // the name of this host
	Ongoing bool   // it runs or is paused, and was not stopped or aborted
	Waiting int    // how many other hosts have not had their turn
	// Wants is the etcd version to reach, empty for any, and Runs the version that this host's member reports, empty if
	// unknown. They are compared as texts, because all versions that cannot be parsed are equal.
	Wants, Runs string
	Member      bool // this host is a member
}

// RolloutEnd is what happens to a rollout. The zero value leaves it as it is: the host's request stays.
type RolloutEnd struct {
	HostDone bool   // this host is done
	Done     bool   // it was the last host, so the rollout is done
	Stopped  string // why the rollout stops; empty if it does not
}

// RolloutAfter returns what happens to a rollout when a step ends the operation of one of its hosts. A host that does
// not come back as required stops the rollout.
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
