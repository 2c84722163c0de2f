// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// RolloutState is the state of a rollout in its record.
type RolloutState string

// The states of a rollout. An operator may resume a stopped one.
const (
	RolloutRunning RolloutState = "running"
	RolloutPaused  RolloutState = "paused"
	RolloutStopped RolloutState = "stopped"
	RolloutAborted RolloutState = "aborted"
	RolloutDone    RolloutState = "done"
)

// Ongoing reports whether the rollout runs or is paused: it is neither stopped nor over.
func (s RolloutState) Ongoing() bool { return s == RolloutRunning || s == RolloutPaused }

// AgainstRollout returns why no rollout may start next to the last one, or nil.
func AgainstRollout(last RolloutState, by, reason string) *Refusal {
	if !last.Ongoing() {
		return nil
	}
	return conflicts("", "a rollout by "+by+" is "+string(last)+": "+reason,
		"quorumctl rollout status; quorumctl rollout abort ends it")
}

// AgainstChange returns why a rollout can no longer be resumed, paused or aborted, or nil.
func (s RolloutState) AgainstChange() *Refusal {
	if s != RolloutDone && s != RolloutAborted {
		return nil
	}
	return conflicts("", "it is "+string(s), "quorumctl rollout start starts another")
}

// AgainstUnread returns why no rollout of all hosts may start while a host record cannot be read, or nil. A rollout of
// named hosts may: it reports any of them that is absent.
func AgainstUnread(u Unreadable, named bool) *Refusal {
	if named {
		return nil
	}
	return conflicts(RecordUnreadable, u.Key+": "+u.Why, u.Hint()+"; or name the hosts: --hosts")
}

// AgainstProgram returns why a program may not run while etcd is down, or nil. cause is why it cannot run, empty if it
// can; where is a prefix that names the host, if needed.
func AgainstProgram(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "put the program into commands.d, next to the hooks, on every host, owned "+
		"by root and writable only by root")
}

// AgainstReboot returns why a machine may not be rebooted, or nil. cause is why the agent cannot reboot it, empty if it
// can; where is a prefix that names the host, if needed.
func AgainstReboot(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "quorumctl maintenance on, and reboot by hand")
}

// RolloutBegins returns the initial state of a rollout, and why: waiting is the number of hosts to take down.
func RolloutBegins(waiting int) (RolloutState, string) {
	if waiting > 0 {
		return RolloutRunning, ""
	}
	return RolloutDone, "no host had to be taken down"
}

// RolloutHost is a host that a rollout may include.
type RolloutHost struct {
	ID, Name string
	Manage   bool   // its agent may act
	Member   bool   // it has a member
	Etcd     string // the version that its member reports, as a text: see RolloutProgress
	Skipped  bool   // it already runs the requested version
}

// RolloutHosts returns the present hosts that a rollout includes: the named hosts, or all hosts to which its work
// applies. A member that already runs the requested version is skipped.
func RolloutHosts(all []RolloutHost, named []string, w Work, version string) ([]RolloutHost, *Refusal) {
	var out []RolloutHost
	left := slices.Clone(named)
	for _, h := range all {
		i := slices.IndexFunc(left, func(name string) bool { return name == h.Name || name == h.ID })
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case len(named) > 0 || w.NeedsMember() && !h.Member:
			continue
		}
		if !h.Manage {
			return nil, conflicts("", "quorumd on "+h.Name+" only observes",
				"set mode: manage there, or name the hosts: --hosts")
		}
		h.Skipped = version != "" && h.Member && h.Etcd == version
		out = append(out, h)
	}
	const hint = "quorumctl status lists the hosts"
	switch {
	case len(left) > 0:
		return nil, &Refusal{Wrong, "", "no present host is called " + strings.Join(left, ", "), hint}
	case len(out) == 0:
		return nil, conflicts("", "no host is affected", hint)
	}
	return out, nil
}

// ReleaseStops reports whether a rollout stops when an operator releases an operation: the next host must not be taken
// down as if the released one were back. op is nil if the operation's record cannot be read.
func (s RolloutState) ReleaseStops(op *Op, waiting []string) bool {
	return s == RolloutRunning && (op == nil || op.info().down && slices.Contains(waiting, op.Host))
}
