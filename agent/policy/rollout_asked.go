// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
)

// RolloutState is how a rollout stands by its record.
type RolloutState string

// The states of a rollout. A stopped one may go on, at a person's word.
const (
	RolloutRunning RolloutState = "running"
	RolloutPaused  RolloutState = "paused"
	RolloutStopped RolloutState = "stopped"
	RolloutAborted RolloutState = "aborted"
	RolloutDone    RolloutState = "done"
)

// Goes tells whether it runs, or is paused: nobody has stopped it, and it is not over.
func (s RolloutState) Goes() bool { return s == RolloutRunning || s == RolloutPaused }

// AgainstRollout says why no rollout is to be started beside the last one, or gives nil.
func AgainstRollout(last RolloutState, by, reason string) *Refusal {
	if !last.Goes() {
		return nil
	}
	return conflicts("", "one of "+by+" is "+string(last)+": "+reason,
		"quorumctl rollout status; quorumctl rollout abort ends it")
}

// AgainstChange says why a person does not let a rollout go on, pause or abort it any more, or gives nil.
func (s RolloutState) AgainstChange() *Refusal {
	if s != RolloutDone && s != RolloutAborted {
		return nil
	}
	return conflicts("", "it is "+string(s), "quorumctl rollout start starts another")
}

// AgainstUnread says why no rollout is to be started while the record of a host cannot be read, or gives nil: all hosts
// are meant, and that is one. Of named ones it is said which are not present.
func AgainstUnread(u Unreadable, named bool) *Refusal {
	if named {
		return nil
	}
	return conflicts(RecordUnreadable, u.Key+": "+u.Why, u.Hint()+"; or name the hosts: --hosts")
}

// AgainstProgram says why no program is to be run while etcd is down, or gives nil: it cannot be run for that cause;
// empty: it can. where begins the text, which says on which host that is where people may not know.
func AgainstProgram(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "put the program into commands.d, next to the hooks, on every host, owned "+
		"by root and writable only by root")
}

// AgainstReboot returns the refusal of a reboot for which the machine's own rules leave no way, or nil.
func AgainstReboot(where, cause string) *Refusal {
	if cause == "" {
		return nil
	}
	return conflicts("", where+cause, "quorumctl maintenance on, and reboot by hand")
}

// RolloutBegins gives how a rollout for which so many hosts wait stands when it is recorded, with a text for people.
func RolloutBegins(waiting int) (RolloutState, string) {
	if waiting > 0 {
		return RolloutRunning, ""
	}
	return RolloutDone, "no host had to be taken down"
}

// RolloutHost is a host that a rollout may be for.
type RolloutHost struct {
	ID, Name string
	Manage   bool   // its agent may act
	Member   bool   // it holds one
	Etcd     string // that its member runs, as it tells; a text: see RolloutTurn
	Skipped  bool   // it runs what is wanted already
}

// RolloutHosts gives those of all present hosts that a rollout is for: the named ones, or all that its work concerns. A
// member that runs the wanted version already is skipped.
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

// ReleaseStops tells whether a rollout stops when a person releases an operation: the next host must not go as if the
// one were back that was in its turn. op is nil where nobody can read whose operation it was.
func (s RolloutState) ReleaseStops(op *Op, waiting []string) bool {
	return s == RolloutRunning && (op == nil || op.info().down && slices.Contains(waiting, op.Host))
}
