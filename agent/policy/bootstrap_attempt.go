// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"
)

// BootstrapAttempt is what this host knows about an automatic bootstrap by the listed hosts. The zero value: there is
// none.
//
// Only the first host of the list may start it. Its attempt has a name that is never used again, and it starts only
// when all other hosts have promised this attempt on disk. A promise is final: if the first host loses its disk, no
// host promises its next attempt.
type BootstrapAttempt struct {
	List         string            // digest of the list
	First        string            // the host that starts
	PromisedList string            // the list that this host has recorded, or empty
	Attempt      string            // and the attempt, or empty
	OnRequest    bool              // no automatic bootstrap: a request on a listed host asks the others first
	Others       []BootstrapAnswer // from the other listed hosts, by name
}

// BootstrapPhase is how far a host is with a new cluster that its operator requested.
type BootstrapPhase string

// The phases. The zero value: there is neither a request nor a sign of a cluster.
const (
	BootstrapNone    BootstrapPhase = ""
	BootstrapAsking  BootstrapPhase = "asking"  // it has a request, and asks the other listed hosts
	BootstrapDecided BootstrapPhase = "decided" // none of them had one: it creates the cluster
	BootstrapCluster BootstrapPhase = "cluster" // it has data, has belonged to a cluster, has seen one, or sees one
)

func (p BootstrapPhase) known() bool {
	return p == BootstrapNone || p == BootstrapAsking || p == BootstrapDecided || p == BootstrapCluster
}

// BootstrapAnswer is the answer of a listed host.
type BootstrapAnswer struct {
	Name         string
	Silent       string // why there is no current answer; empty if there is one
	Past         string // why it is not new; empty if it has no data and never had any
	List         string // of its configuration
	PromisedList string
	Attempt      string // that it has promised
	Phase        BootstrapPhase
	Asked        BootstrapPhase // the phase that the asking host published before it asked
}

// BootstrapNote is what to record on this host's disk. The zero value changes nothing.
type BootstrapNote struct {
	Begin   bool   // a new attempt of its own
	Promise string // it promises this attempt
	Start   bool   // it creates the cluster
	Decide  bool   // no other listed host had a request when this one, with its own, asked
}

// BootstrapAnswerOf returns this host's answer to the other listed hosts.
func BootstrapAnswerOf(v View) BootstrapAnswer {
	f := v.BootstrapAttempt
	return BootstrapAnswer{
		Name: v.Self.Name, Past: past(v), List: f.List, PromisedList: f.PromisedList, Attempt: f.Attempt,
		Phase: phase(v),
	}
}

// phase returns how far this host is with a requested cluster. Data created by its own decision counts as a cluster,
// too.
func phase(v View) BootstrapPhase {
	switch data := v.Data.State; {
	case v.Cluster.Listed || v.Cluster.Reachable || v.Cluster.Denied || v.Bootstrap.Done,
		v.Bootstrap.LastCluster != 0, data != DataEmpty && data != DataUnknown:
		return BootstrapCluster
	case v.Bootstrap.Decided:
		return BootstrapDecided
	case v.Bootstrap.Requested:
		return BootstrapAsking
	}
	return BootstrapNone
}

// past returns why this host is not new: it has data, may have data, or once had some. If that is unknown, the host is
// not new.
func past(v View) string {
	switch data := v.Data.State; {
	case v.Cluster.Listed || v.Cluster.Reachable || v.Cluster.Denied:
		return "a cluster answers it"
	case v.Bootstrap.Done:
		return "it has belonged to a cluster"
	case v.Bootstrap.LastCluster != 0:
		return fmt.Sprintf("it has seen cluster %x", v.Bootstrap.LastCluster)
	case v.Bootstrap.Requested:
		return "it creates a cluster"
	case v.Recovery != nil:
		return "it has a recovery plan"
	case data == DataUnknown:
		return "its data directory has not been read yet"
	case data == DataMember && hasDefaultData(v.Data.MemberID, v.Data.ClusterID):
		return "etcd created a default single-member cluster there"
	case data != DataEmpty:
		return "there is data in its data directory"
	case v.Unit.State != UnitInactive && v.Unit.State != UnitFailed && v.Unit.State != UnitMissing:
		return "its etcd is " + cmp.Or(string(v.Unit.State), "in an unknown state")
	case v.Self.Conflict != "":
		return "another host has its name: " + v.Self.Conflict
	case v.Self.Mode != Manage:
		return "its quorumd only observes"
	}
	return ""
}

// founding returns which hosts a new host waits for.
func automaticBootstrap(v View) (Decision, bool) {
	if v.BootstrapAttempt.List == "" || past(v) != "" {
		return Decision{}, false
	}
	if v.BootstrapAttempt.OnRequest {
		text := v.BootstrapAttempt.elsewhere("")
		return wait(BootstrapWaiting, "%s; this host joins it when it answers", text), text != ""
	}
	_, text := found(v)
	return wait(BootstrapWaiting, "%s", text), true
}

// noteBootstrapAttempt returns what to record on disk.
func noteBootstrapAttempt(v View) BootstrapNote {
	if v.BootstrapAttempt.List != "" && v.Bootstrap.Requested {
		return BootstrapNote{Decide: asks(v) && v.BootstrapAttempt.alone(v.Self.Name).decide}
	}
	if v.BootstrapAttempt.List == "" || v.BootstrapAttempt.OnRequest || past(v) != "" {
		return BootstrapNote{}
	}
	n, _ := found(v)
	return n
}

// asks reports whether this host's request waits for its decision: hosts are listed, and nothing shows a cluster yet.
func asks(v View) bool {
	return v.BootstrapAttempt.List != "" && v.Bootstrap.Requested && !v.Bootstrap.Decided && phase(v) == BootstrapAsking
}

// answered is the result of the other listed hosts' answers for a host with a request: it decides, ends the request
// because another host creates the cluster, or waits.
type answered struct {
	decide      bool
	ended, wait string
}

// elsewhere returns which other listed host has or creates the cluster, or has a request that precedes the one on the
// host with that name; "" if none is known. With an empty name any request does.
func (f BootstrapAttempt) elsewhere(name string) string {
	for _, a := range f.Others {
		switch {
		case a.Silent != "" || a.List != f.List:
		case a.Phase == BootstrapCluster:
			return a.Name + " is not new: " + cmp.Or(a.Past, "it knows a cluster")
		case a.Phase == BootstrapDecided:
			return a.Name + " creates the cluster"
		case a.Phase == BootstrapAsking && (name == "" || a.Name < name):
			return "bootstrap was requested on " + a.Name
		}
	}
	return ""
}

// alone judges the answers. Each host publishes its request before it asks the others, so of two hosts that ask at the
// same time, at least one reads the other's request. The later one in the list ends its own. A host decides only if no
// answer reports data or a request; any doubt waits.
func (f BootstrapAttempt) alone(name string) answered {
	if text := f.elsewhere(name); text != "" {
		return answered{ended: text}
	}
	var doubts []string
	for _, a := range f.Others {
		switch {
		case a.Asked != BootstrapAsking:
			doubts = append(doubts, a.Name+" has not been asked since this host received the request")
		case a.Silent != "" || a.List != f.List:
			doubts = append(doubts, f.doubt(a))
		case a.Phase == BootstrapAsking:
			doubts = append(doubts, "bootstrap was requested on "+a.Name+" too, and its name sorts later")
		case a.Attempt != "" && a.Attempt != f.Attempt:
			doubts = append(doubts, a.Name+" is committed to another attempt: a cluster may exist")
		case a.Past != "" || !a.Phase.known():
			doubts = append(doubts, a.Name+" is not new: "+cmp.Or(a.Past, "its phase "+string(a.Phase)+" is unknown"))
		}
	}
	if len(doubts) > 0 || len(f.Others) == 0 {
		return answered{wait: "this host creates the cluster when no other listed host has one or a request for one: " +
			strings.Join(doubts, "; ")}
	}
	return answered{decide: true, wait: "no other listed host has a cluster or a request for one"}
}

// askListed asks the other listed hosts before a requested cluster is created. It returns false once that is decided,
// or if no hosts are listed.
func askListed(v View) (Decision, bool) {
	if !asks(v) {
		return Decision{}, false
	}
	switch a := v.BootstrapAttempt.alone(v.Self.Name); {
	case a.ended != "":
		return do(Step{Kind: StepFinishBootstrap, Outcome: ClusterExists, Why: a.ended}), true
	default: // even if it decides: the disk records that before anything starts
		return wait(BootstrapWaiting, "%s", a.wait), true
	}
}

// found decides for a new host. Any doubt waits.
func found(v View) (BootstrapNote, string) {
	f := v.BootstrapAttempt
	if f.PromisedList != "" && f.PromisedList != f.List {
		return BootstrapNote{}, "this host is committed to a different list of hosts than bootstrap.hosts has now"
	}
	if v.Self.Name != f.First {
		return standBy(f)
	}
	if f.Attempt == "" {
		return BootstrapNote{Begin: true}, "this host begins an attempt to create the cluster"
	}
	var doubts []string
	for _, a := range f.Others {
		if text := f.doubt(a); text != "" {
			doubts = append(doubts, text)
		} else if a.Attempt == "" {
			doubts = append(doubts, a.Name+" has not committed to this attempt yet")
		} else if a.Attempt != f.Attempt || a.PromisedList != f.List {
			doubts = append(doubts, a.Name+" is committed to an earlier attempt: a cluster may exist")
		}
	}
	if len(doubts) > 0 || len(f.Others) == 0 {
		return BootstrapNote{}, "this host creates the cluster when all others agree: " + strings.Join(doubts, "; ")
	}
	return BootstrapNote{Start: true}, "all others agree; this host creates the cluster"
}

// standBy decides for a host that is not the first of the list.
func standBy(f BootstrapAttempt) (BootstrapNote, string) {
	for _, a := range f.Others {
		if a.Name != f.First {
			continue
		}
		switch text := f.doubt(a); {
		case f.Attempt == "" && text != "":
			return BootstrapNote{}, a.Name + " is to create the cluster, and this host has not committed to it " +
				"yet: " + text
		case f.Attempt == "" && (a.Attempt == "" || a.PromisedList != f.List):
			return BootstrapNote{}, a.Name + " is to create the cluster and has not begun"
		case f.Attempt == "":
			return BootstrapNote{Promise: a.Attempt}, a.Name + " creates the cluster; this host is committed to it"
		case text == "" && a.Attempt != f.Attempt:
			return BootstrapNote{}, a.Name +
				" begins a new attempt, but this host is committed to its earlier one: a cluster may exist"
		}
	}
	return BootstrapNote{}, f.First + " creates the cluster when all listed hosts agree; this host is committed to it"
}

// doubt returns why a host's answer is not that of a new host with the same list.
func (f BootstrapAttempt) doubt(a BootstrapAnswer) string {
	switch {
	case a.Silent != "":
		return a.Name + " does not answer: " + a.Silent
	case a.List != f.List:
		return a.Name + " has another cluster.name or bootstrap.hosts"
	case a.Past != "":
		return a.Name + " is not new: " + a.Past
	}
	return ""
}
