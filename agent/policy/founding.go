// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"
)

// Founding is what this host knows of a cluster that the listed hosts make by themselves. The zero value: none is made.
//
// One host alone may start it, the first of the list. It makes an attempt with a name that never comes again, and
// starts only when all others have noted, each on its disk, that they stand by this attempt. A host stands by one
// attempt for ever, so that a first host which has lost its disk finds nobody who stands by its next one.
type Founding struct {
	List         string           // what stands for the list: its digest
	First        string           // the host that starts
	PromisedList string           // the list that this host has noted, or empty
	Attempt      string           // and the attempt, or empty
	Others       []FoundingAnswer // of the other listed hosts, by name
}

// FoundingAnswer is what a listed host says of itself.
type FoundingAnswer struct {
	Name         string
	Silent       string // why it is not known what the host says; empty when it is known, and of now
	Past         string // why it is not new; empty when it has no data and never had any
	List         string // that its configuration has
	PromisedList string
	Attempt      string // that it stands by
}

// FoundingNote is what this host's disk is to say of it. The zero value leaves it as it is.
type FoundingNote struct {
	Begin   bool   // a new attempt of its own
	Promise string // that it stands by this attempt
	Start   bool   // that it makes the cluster
}

// FoundingWord is what this host tells the other listed hosts.
func FoundingWord(v View) FoundingAnswer {
	f := v.Founding
	return FoundingAnswer{
		Name: v.Self.Name, Past: past(v), List: f.List, PromisedList: f.PromisedList, Attempt: f.Attempt,
	}
}

// past tells why this host is none that has no data and never had any. Who does not know has a past.
func past(v View) string {
	switch data := v.Data.State; {
	case v.Cluster.Listed || v.Cluster.Reachable || v.Cluster.Denied:
		return "a cluster answers it"
	case v.Bootstrap.Done:
		return "it has belonged to a cluster"
	case v.Bootstrap.Seen != 0:
		return fmt.Sprintf("it has seen cluster %x", v.Bootstrap.Seen)
	case v.Bootstrap.Requested:
		return "it makes a cluster"
	case v.Recovery != nil:
		return "it has a plan to bring a cluster back"
	case data == DataUnknown:
		return "its data directory has not been looked at yet"
	case data == DataMember && hasDefaultData(v.Data.MemberID, v.Data.ClusterID):
		return "etcd has made a cluster of one there by default"
	case data != DataEmpty:
		return "there is data in its data directory"
	case v.Unit.State != UnitInactive && v.Unit.State != UnitFailed && v.Unit.State != UnitMissing:
		return "its etcd is " + cmp.Or(string(v.Unit.State), "not looked at yet")
	case v.Self.Conflict != "":
		return "another host has its name: " + v.Self.Conflict
	case v.Self.Mode != Manage:
		return "its quorumd only observes"
	}
	return ""
}

// founding says for whom a new host waits.
func founding(v View) (Decision, bool) {
	if v.Founding.List == "" || past(v) != "" {
		return Decision{}, false
	}
	_, text := found(v)
	return wait(FoundingWaits, "%s", text), true
}

// noteFounding gives what the disk is to say.
func noteFounding(v View) FoundingNote {
	if v.Founding.List == "" || past(v) != "" {
		return FoundingNote{}
	}
	n, _ := found(v)
	return n
}

// found decides for a new host. Any doubt waits.
func found(v View) (FoundingNote, string) {
	f := v.Founding
	if f.PromisedList != "" && f.PromisedList != f.List {
		return FoundingNote{}, "this host stands by another list of hosts than bootstrap.hosts is now"
	}
	if v.Self.Name != f.First {
		return standBy(f)
	}
	if f.Attempt == "" {
		return FoundingNote{Begin: true}, "this host begins an attempt to make the cluster"
	}
	var doubts []string
	for _, a := range f.Others {
		if text := f.doubt(a); text != "" {
			doubts = append(doubts, text)
		} else if a.Attempt == "" {
			doubts = append(doubts, a.Name+" does not stand by this attempt yet")
		} else if a.Attempt != f.Attempt || a.PromisedList != f.List {
			doubts = append(doubts, a.Name+" stands by an earlier attempt: a cluster may have been made")
		}
	}
	if len(doubts) > 0 || len(f.Others) == 0 {
		return FoundingNote{}, "this host makes the cluster when all others agree: " + strings.Join(doubts, "; ")
	}
	return FoundingNote{Start: true}, "all others agree; this host makes the cluster"
}

// standBy is the part of a host that starts nothing itself.
func standBy(f Founding) (FoundingNote, string) {
	for _, a := range f.Others {
		if a.Name != f.First {
			continue
		}
		switch text := f.doubt(a); {
		case f.Attempt == "" && text != "":
			return FoundingNote{}, a.Name + " is to make the cluster, and this host does not stand by it yet: " + text
		case f.Attempt == "" && (a.Attempt == "" || a.PromisedList != f.List):
			return FoundingNote{}, a.Name + " is to make the cluster, and has not begun"
		case f.Attempt == "":
			return FoundingNote{Promise: a.Attempt}, a.Name + " makes the cluster; this host stands by it"
		case text == "" && a.Attempt != f.Attempt:
			return FoundingNote{}, a.Name +
				" begins anew, but this host stands by its earlier attempt: a cluster may have been made"
		}
	}
	return FoundingNote{}, f.First + " makes the cluster when all listed hosts agree; this host stands by it"
}

// doubt tells why a host's answer is none of a new host that has the same list.
func (f Founding) doubt(a FoundingAnswer) string {
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
