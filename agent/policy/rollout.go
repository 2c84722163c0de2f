// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rollout takes hosts down for the same work, one after another.
type Rollout struct {
	ID              string
	Work            Work          // possibly unknown to this agent
	Runs            bool          // the rollout is neither paused nor stopped, aborted or done
	Waiting         []string      // the hosts that the rollout has not yet taken down
	Due             bool          // this host's last ended request is not one of the rollout since its last resume
	Upgrade         string        // the etcd version to reach; empty if the rollout is not an upgrade
	WithoutSnapshot bool          // an operator waived the snapshot
	Hold            bool          // the rollout has yet to pause before the last member with an older minor version
	Began           time.Duration // time since the rollout was started or last resumed, by wall clocks
	Over            bool          // the rollout is aborted or done
	Raises          bool          // the rollout raises the cluster version, so afterwards no member can be rolled back
	Downgrade       bool          // the rollout lowers the cluster version to that of Upgrade
	// UnchangedFor is for how long this agent has observed that the rollout's record does not change.
	UnchangedFor time.Duration
	Job          bool // quorumd has enabled etcd's downgrade job for this rollout, and has not cancelled it
}

// CountedInRollout reports whether a rollout counts a finished request as done, so that it does not take the host down
// again. resumedThen is how many times the rollout had been resumed when it made the request, and resumed is how many
// times by now: after a resume, the rollout may take every waiting host down once more. A request counts however it
// ended, because even a released operation may have taken the host down.
func CountedInRollout(resumedThen, resumed int) bool { return resumedThen >= resumed }

// RolloutNext returns the ID of the host that a rollout takes down next: unhealthy hosts first, then hosts without a
// voter, then followers, and the leader last. Hosts that are absent or only observe are skipped. It returns an empty
// string if no host can be next, or if a waiting host already has a request.
func RolloutNext(v View, waiting []string) string {
	var next Host
	found := false
	for _, h := range v.Hosts {
		if !slices.Contains(waiting, h.ID) || !h.Manage {
			continue
		}
		if h.Wants != "" {
			return "" // only one host at a time has a request
		}
		if !found || cmp.Or(cmp.Compare(v.rolloutRank(h), v.rolloutRank(next)), cmp.Compare(h.Name, next.Name),
			cmp.Compare(h.ID, next.ID)) < 0 {
			next, found = h, true
		}
	}
	return next.ID
}

func (v View) rolloutRank(h Host) int {
	if Unhealthy(h.Health) {
		return 0
	}
	i := slices.IndexFunc(v.Cluster.Members, func(m Member) bool { return m.PeerURL == h.PeerURL })
	switch {
	case i < 0:
		return 1
	case v.Cluster.Members[i].Learner:
		return 2
	case !v.Cluster.Members[i].Leader:
		return 3
	}
	return 4
}

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

// AgainstRollout returns why the last rollout keeps a new one from starting, or nil.
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
// named hosts may, because it reports each named host that is absent.
func AgainstUnread(u Unreadable, named bool) *Refusal {
	if named {
		return nil
	}
	return conflicts(RecordUnreadable, u.Key+": "+u.Why, u.Hint()+"; or name the hosts: --hosts")
}

// RolloutBegins returns the initial state of a rollout, and the reason for it. waiting is the number of hosts to take
// down.
func RolloutBegins(waiting int) (RolloutState, string) {
	if waiting > 0 {
		return RolloutRunning, ""
	}
	return RolloutDone, "no host had to be taken down"
}

// RolloutHost is a host that a rollout may include.
type RolloutHost struct {
	ID, Name string
	Manage   bool   // the host's agent may act
	Member   bool   // the host has a member
	Etcd     string // the version that its member reports, as text: see RolloutProgress
	Skipped  bool   // the rollout skips the host, for example because it already runs the requested version
	External bool   // another program, such as a kubelet, starts and stops its etcd
	// PeerURL is the peer URL of its member. NewPeerURL and NewClientURL are the configured URLs if they differ from
	// the registered ones; else empty.
	PeerURL, NewPeerURL, NewClientURL string
	PeerTLS                           PeerTLS // the state of the peer certificate in its member's process
	Next                              NextEtcd
	PeerTLSProblem                    string // why the host's etcd cannot use https between members: [PeerTLSProblem]
	Database                          Database
	Forced                            bool // an operator requests the defragmentation even if it frees little space
}

// RolloutHosts returns the present hosts that a rollout includes: the named hosts, or all hosts to which its work
// applies. A host is marked as skipped if its member already runs the requested version, or if a defragmentation of all
// hosts does not have to include it.
func RolloutHosts(all []RolloutHost, named []string, w Work, version string) ([]RolloutHost, *Refusal) {
	var out []RolloutHost
	left := slices.Clone(named)
	for _, h := range all {
		i := slices.IndexFunc(left, func(name string) bool { return name == h.Name || name == h.ID })
		switch {
		case i >= 0:
			left = slices.Delete(left, i, i+1)
		case len(named) > 0 || w.NeedsMember() && !h.Member,
			w == WorkReaddress && h.NewPeerURL == "" && h.NewClientURL == "":
			continue
		}
		if refusal := againstReaddress(all, h, w); refusal != nil {
			return nil, refusal
		}
		if h.External && h.Member && w.info().automatic {
			return nil, againstExternal(h, version)
		}
		if !h.Manage {
			return nil, conflicts("", "quorumd on "+h.Name+" only observes",
				"set mode: manage there and reload quorumd, or name only the other hosts")
		}
		if version != "" && h.Member {
			if refusal := againstNext(h, version); refusal != nil {
				return nil, refusal
			}
		}
		h.Skipped = version != "" && h.Member && h.Etcd == version
		if w == WorkDefrag {
			refusal := againstDefrag(h)
			if refusal != nil && len(named) > 0 {
				return nil, refusal
			}
			h.Skipped = refusal != nil
		}
		out = append(out, h)
	}
	const hint = "quorumctl status lists the hosts"
	switch {
	case len(left) > 0:
		return nil, &Refusal{Wrong, "", "no host in the cluster is called " + strings.Join(left, ", "), hint}
	case len(out) == 0 && w == WorkReaddress:
		return nil, conflicts("", "no host's configured peer or client URL differs from its member's",
			"set etcd.peerURL or etcd.clientURL in quorumd.yaml on the host, and reload quorumd there")
	case len(out) == 0:
		return nil, conflicts("", "no host is affected", hint)
	}
	return out, nil
}

// againstExternal returns why a rollout cannot stop a host's etcd, which another program runs.
func againstExternal(h RolloutHost, version string) *Refusal {
	does, hint := "can stop it", "restart it with that program, one host at a time: quorumctl maintenance on "+
		"--reason '<why>'"
	if version != "" {
		does, hint = "can upgrade it", "upgrade it with the tool that manages it, such as kubeadm, one host at a "+
			"time: quorumctl maintenance on --reason '<why>'"
	}
	return conflicts(EtcdExternal, "another program, such as a kubelet, runs etcd on "+h.Name+", so only that program "+
		does, hint+"; or let quorumd stop and start it with your programs in /etc/quorumd/hooks/etcd.d")
}

// ReleaseStops reports whether a rollout stops when an operator releases an operation: the next host must not be taken
// down as if the released one were back. op is nil if the operation's record cannot be read.
func (s RolloutState) ReleaseStops(op *Op, waiting []string) bool {
	return s == RolloutRunning && (op == nil || op.info().down && slices.Contains(waiting, op.Host))
}

// RolloutProgress is the state of a rollout, as observed by a host whose operation ends.
type RolloutProgress struct {
	Host    string // the name of this host
	Ongoing bool   // the rollout runs or is paused, and was not stopped or aborted
	Waiting int    // how many other hosts the rollout has not yet taken down
	// Wants is the etcd version to reach, empty for any, and Runs the version that this host's member reports, empty if
	// unknown. They are compared as texts, because ParseVersion returns the same unknown version for all texts that it
	// cannot parse.
	Wants, Runs string
	Member      bool // this host is a member
}

// RolloutEnd is the change of a rollout when a host's operation ends. The zero value changes nothing: the host's
// request stays.
type RolloutEnd struct {
	HostDone bool   // the rollout is done with this host
	Done     bool   // this was the last host, so the rollout is done
	Stopped  string // why the rollout stops; empty if it does not
}

// RolloutAfter returns the change of a rollout when a step ends the operation of one of its hosts. If the host does not
// come back as required, the rollout stops.
func RolloutAfter(t RolloutProgress, step Step) RolloutEnd {
	switch {
	case step.Outcome == Cancelled:
		return RolloutEnd{Stopped: t.Host + "'s request was cancelled"}
	case step.Outcome == HookFailed || step.Outcome == CommandFailed || step.Outcome == DefragFailed:
		return RolloutEnd{Stopped: "on " + t.Host + ": " + step.Why}
	case step.Outcome == MemberLost || step.Outcome == HealthBad:
		return RolloutEnd{Stopped: "on " + t.Host + ": " + step.Why}
	case step.Outcome != Cycled:
		return RolloutEnd{}
	case t.Wants != "" && t.Member && t.Runs != t.Wants:
		runs := t.Runs
		if runs == "" {
			runs = "of unknown version"
		}
		return RolloutEnd{Stopped: fmt.Sprintf("%s came back with etcd %s, not %s", t.Host, runs, t.Wants)}
	}
	return RolloutEnd{HostDone: true, Done: t.Ongoing && t.Waiting == 0}
}
