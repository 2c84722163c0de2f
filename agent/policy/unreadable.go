// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// RecordKind says what a record in etcd is about.
type RecordKind string

// The kinds of records.
const (
	RecordOp      RecordKind = "op"
	RecordPause   RecordKind = "pause"
	RecordRollout RecordKind = "rollout"
	RecordLock    RecordKind = "lock"
	RecordHost    RecordKind = "host"
	RecordRepairs RecordKind = "repairs"
)

// Unreadable is a record in etcd that this agent cannot read.
type Unreadable struct {
	Kind RecordKind
	Key  string
	Why  string
}

// recordInfo declares what waits for a kind of record, and what a person does about one that cannot be read.
type recordInfo struct {
	kind    RecordKind
	holds   bool // everything: nobody knows what is in flight, or whether anything may be begun
	meaning string
	remedy  string // %s is the key
}

func records() []recordInfo {
	return []recordInfo{
		{RecordOp, true, "so nothing is begun", "quorumctl op release --force --reason '<why>' deletes it"},
		{RecordPause, true, "so the cluster counts as paused", "quorumctl resume deletes it"},
		{RecordRollout, false, "so no rollout continues", "quorumctl rollout abort deletes it"},
		{RecordRepairs, false, "so no voter is replaced", "etcdctl del %s"},
		{RecordLock, false, "so the lock counts as held by another host", "if it stays: etcdctl del %s"},
		{
			RecordHost, false, "so nothing is known of that host",
			"restart quorumd there, as new as here; if there is no such host: etcdctl del %s",
		},
	}
}

// cannotRead tells whether there is a record of that kind which cannot be read.
func (v View) cannotRead(kind RecordKind) bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.Kind == kind })
}

// Hint says what a person does about a record of that kind which cannot be read.
func (u Unreadable) Hint() string {
	for _, info := range records() {
		if info.kind == u.Kind && strings.Contains(info.remedy, "%s") {
			return fmt.Sprintf(info.remedy, u.Key)
		}
		if info.kind == u.Kind {
			return info.remedy
		}
	}
	return ""
}

func (u Unreadable) info() recordInfo {
	for _, info := range records() {
		if info.kind == u.Kind {
			return info
		}
	}
	return recordInfo{kind: u.Kind, holds: true} // what is not known is waited for
}

// holdsAll tells whether a record that cannot be read keeps everything back, as a pause does.
func (v View) holdsAll() bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.info().holds })
}

// unreadable gives the reason that names the records which cannot be read, the weightiest first.
func (v View) unreadable() (Reason, bool) {
	if len(v.Unreadable) == 0 {
		return Reason{}, false
	}
	first := v.Unreadable[0]
	if i := slices.IndexFunc(v.Unreadable, func(u Unreadable) bool { return u.info().holds }); i >= 0 {
		first = v.Unreadable[i]
	}
	text := fmt.Sprintf("%s: %s; %s: %s", first.Key, first.Why, first.info().meaning, first.Hint())
	if more := len(v.Unreadable) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return Reason{RecordUnreadable, text}, true
}

// tell adds to a decision what cannot be read, which is a reason of its own whatever is done.
func (v View) tell(d Decision) Decision {
	said := slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == RecordUnreadable })
	switch r, holds := v.unreadable(); {
	case !holds || said:
	case v.holdsAll() && d.Step.Kind == StepNone:
		d.Reasons = append([]Reason{r}, d.Reasons...)
	default:
		d.Reasons = append(slices.Clone(d.Reasons), r)
	}
	return d
}
